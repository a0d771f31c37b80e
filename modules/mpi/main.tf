# An MPI program on a few machines: by default in the Kubernetes cluster of your kubeconfig.

terraform {
  required_version = ">= 1.2"
  required_providers {
    iterative = { source = "iterative/iterative" }
  }
}

locals {
  processes = var.num_workers * var.slots_per_worker

  # What the run script asks for, if it says so.
  asked = try(tonumber(regex("(?:^|\\s)--?np?[ =]+([0-9]+)", var.runscript)[0]), local.processes)

  # The first process grid, if the file is an HPL.dat: lines 11 and 12 begin with P and Q.
  text  = var.path_to_file == "" ? "" : file(var.path_to_file)
  lines = split("\n", local.text)
  p     = try(tonumber(regex("^\\s*([0-9]+)\\s+Ps", local.lines[10])[0]), null)
  q     = try(tonumber(regex("^\\s*([0-9]+)\\s+Qs", local.lines[11])[0]), null)
  grid  = local.p == null || local.q == null ? local.processes : local.p * local.q

  mounted = var.mount_path == "" ? basename(var.path_to_file) : var.mount_path

  # A machine type is a label of nodes; anything with an equals sign is a selector already.
  is_type  = length(regexall("=", var.machine_type)) == 0
  selector = local.is_type ? "node.kubernetes.io/instance-type=${var.machine_type}" : var.machine_type
}

resource "iterative_task" "mpi" {
  cloud       = var.cloud
  name        = var.container_name
  image       = var.image_id
  machine     = var.worker_size
  region      = var.machine_type == "" ? null : local.selector
  parallelism = var.num_workers
  mpi         = { slots = var.slots_per_worker, implementation = var.implementation }
  files       = var.path_to_file == "" ? {} : { (local.mounted) = local.text }
  environment = var.environment
  timeout     = var.timeout
  script      = "#!/bin/sh\n${var.runscript}\n"

  # Apply ends with the program, and has written what it printed.
  wait     = true
  log_file = "results/${var.container_name}.txt"

  lifecycle {
    precondition {
      condition     = local.asked == local.processes
      error_message = "runscript asks for ${local.asked} processes, but num_workers x slots_per_worker = ${local.processes}."
    }
    precondition {
      condition     = local.grid == local.processes
      error_message = "${var.path_to_file} has a grid of P x Q = ${local.grid} processes, but num_workers x slots_per_worker = ${local.processes}."
    }
  }
}
