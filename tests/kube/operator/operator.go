// The one program that this module builds is mpi-operator's own: nothing here is compiled.

//go:build tools

package operator

import _ "github.com/kubeflow/mpi-operator/cmd/mpi-operator"
