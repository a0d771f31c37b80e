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

    cloud          = "azure"
    region         = "us-west"
    instance_type  = "m"
    # Uncomment it if GPU is needed:
    # instance_gpu = "tesla"
}
