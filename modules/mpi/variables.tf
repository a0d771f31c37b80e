variable "num_workers" {
  description = "Machines (on Kubernetes: pods) that run processes."
  type        = number
  default     = 2
}

variable "slots_per_worker" {
  description = "Processes per machine."
  type        = number
  default     = 2
}

variable "image_id" {
  description = "Container image with the program and its MPI; on clouds whose machines boot, docker://NAME."
  type        = string
}

variable "container_name" {
  description = "Name of the task, and of results/NAME.txt: the same name is always the same task."
  type        = string
  default     = "hpl-benchmarks"
}

variable "runscript" {
  description = "What to run, once, on the first machine: mpirun starts processes on all of them."
  type        = string
  default     = "mpirun xhpl"
}

variable "path_to_file" {
  description = "Input of the program, up to 1 MiB, as a path on this computer; empty: none."
  type        = string
  default     = ""
}

variable "mount_path" {
  description = "Where the program finds the input, such as /home/nixuser/HPL.dat (default: in the folder that it runs in)."
  type        = string
  default     = ""
}

variable "machine_type" {
  description = "Type of the nodes, such as n2-standard-4, or a node selector, such as role=worker,disk=ssd (default: any node)."
  type        = string
  default     = ""
}

variable "worker_size" {
  description = "Size of each machine: CPUs-MEGABYTES, such as 4-15000, or m, l or xl."
  type        = string
  default     = "m"
}

variable "implementation" {
  description = "MPI of the image: openmpi, intel or mpich."
  type        = string
  default     = "openmpi"
}

variable "environment" {
  description = "Environment variables of the run script."
  type        = map(string)
  default     = {}
}

variable "timeout" {
  description = "Maximum run time of each machine, in seconds."
  type        = number
  default     = 86400
}

variable "cloud" {
  description = "Where to run."
  type        = string
  default     = "k8s"
}
