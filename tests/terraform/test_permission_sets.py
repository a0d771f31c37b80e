"""The pages' identities for machines: what a plan says of each, with nobody asking for logs."""

from __future__ import annotations

import json
from contextlib import closing

from tests.simcloud.aws import backends
from tests.simcloud.aws.account import SimAWS
from tests.simcloud.aws_user import allow
from tests.simcloud.az.account import SimAzure
from tests.simcloud.az_user import User as AzureUser
from tests.simcloud.gcp.account import SimGCP
from tests.simcloud.gcp_user import User as GoogleUser
from tests.terraform.diagnosed import told, validated
from tests.terraform.project import Project

_DENIED = {"Effect": "Deny", "Action": "iam:SimulatePrincipalPolicy", "Resource": "*"}
_TASK = """
resource "iterative_task" "task" {
  cloud          = "CLOUD"
  permission_set = "GIVEN"
  script         = "#!/bin/sh"
}
"""


def _warnings(project: Project, cloud: str, given: str) -> str:
    project.write(_TASK.replace("CLOUD", cloud).replace("GIVEN", given))
    project.init()
    found = told(project.run("plan", "-json", "-input=false"))
    assert not [each for each in found if each.severity == "error"]
    return "\n".join(each.message for each in found if each.severity == "warning")


def test_the_arn_with_one_colon_is_completed(project: Project) -> None:
    with SimAWS() as account:
        project.environment |= account.environment()
        iam = backends.iam()
        iam.create_role("mine", "{}", "/", None, "", [], 3600)
        iam.put_role_policy("mine", "all", json.dumps(allow("*")))
        iam.create_instance_profile("rolename", "/", ["mine"])
        page = "arn:aws:iam:1234567890:instance-profile/rolename"
        said = _warnings(project, "aws", page)
        assert "Using arn:aws:iam::1234567890:instance-profile/rolename as permission_set" in said
        policy = allow("*")
        policy["Statement"].append(_DENIED)
        project.environment |= account.user(policy)
        said = _warnings(project, "aws", page)
        assert "Could not check what" in said
        assert "autoscaling:TerminateInstanceInAutoScalingGroup" in said


def test_project_id_and_the_scopes_of_the_page(project: Project) -> None:
    with SimGCP() as account:
        project.environment |= account.environment()
        with closing(GoogleUser(account.environment())) as user:
            user.make_account("sa-name")
        page = "sa-name@project_id.iam.gserviceaccount.com,scopes=storage-rw"
        said = _warnings(project, "gcp", page)
        assert "project_id in permission_set stands for your project" in said
        assert "Adding the scope compute-rw" in said
        assert "is not allowed compute.instanceGroupManagers.update, the first machine" in said


def test_the_braces_of_the_page_are_refused_and_an_identity_is_looked_at(project: Project) -> None:
    page = (
        "/subscriptions/{subscriptionId}/resourceGroups/{resourceGroupName}/providers/"
        "Microsoft.ManagedIdentity/userAssignedIdentities/{identityName}"
    )
    project.write(_TASK.replace("CLOUD", "az").replace("GIVEN", page))
    project.init()
    [error] = [each.message for each in validated(project, code=1) if each.severity == "error"]
    assert "userAssignedIdentities/NAME, got" in error
    with SimAzure() as account:
        with closing(AzureUser(account.environment())) as user:
            identity = user.make_identity(user.make_group())
        role = {"actions": ["*"], "notActions": ["Microsoft.Authorization/roleAssignments/read"]}
        project.environment |= account.user(role)
        said = _warnings(project, "az", identity["id"])
        assert "Could not check what" in said
        assert "virtualMachineScaleSets/virtualMachines/delete" in said
