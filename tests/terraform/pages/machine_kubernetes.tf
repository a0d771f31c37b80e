terraform {
  required_providers {
    iterative = {
      source = "iterative/iterative"
    }
  }
}

provider "iterative" {}

resource "iterative_machine" "machine" {
  cloud = "kubernetes"
  name = "machine"
  instance_hdd_size = 10
  instance_type = "m"
  ## Uncomment to enable GPU:
  # instance_gpu = "tesla"
}
