output "id" {
  description = "ID of the task, for `sojourn logs` and the like."
  value       = iterative_task.mpi.id
}

output "container_name" {
  description = "Name of the task."
  value       = var.container_name
}

output "state" {
  description = "State of the task when it was last refreshed."
  value       = iterative_task.mpi.state
}

output "results" {
  description = "What the program printed; also in results/NAME.txt."
  value       = try(replace(iterative_task.mpi.logs[0], "/(?m)^\\S+ ?/", ""), "")
}
