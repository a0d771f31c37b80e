terraform {
  required_providers {
    iterative = {
      source = "iterative/iterative"
    }
  }
}

provider "iterative" {}

resource "iterative_machine" "machine" {
    repo           = "https://github.com/iterative/cml"
    driver         = "github"
    labels         = "tf"

    cloud          = "kubernetes"
    instance_type  = "m"
    # Uncomment to enable GPU:
    # instance_gpu = "tesla"
}
