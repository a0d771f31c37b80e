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

    cloud          = "aws"
    region         = "us-west"
    instance_type  = "m"
    # Uncomment to enable the GPU:
    # instance_gpu = "tesla"
}
