"""The custom data of Azure's machines: their first script."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sojourn.clouds.vm.first_script import first_script

if TYPE_CHECKING:
    from sojourn.clouds.az.on_machine.settings import Settings

__all__ = ["LONGEST", "ON_MACHINE", "custom_data"]

LONGEST = 65535  # bytes, as Azure has it
ON_MACHINE = "sojourn.clouds.az.on_machine"
_MODULES = ("metadata.py",)
_LEAVE = r"""imds() {{
    curl -fsS --noproxy '*' -H Metadata:true "http://169.254.169.254/metadata/$1"
}}
about() {{
    imds "instance/compute/$1?api-version=2021-02-01&format=text"
}}
token() {{
    imds "identity/oauth2/token?api-version=2018-02-01&resource=$1&msi_res_id="{identity} |
        sed 's/.*"access_token" *: *"\([^"]*\)".*/\1/'
}}
azure() {{ # the token goes by way of a pipe: others can see arguments
    bearer=$1
    shift
    printf 'header = "Authorization: Bearer %s"\n' "$bearer" | curl -fsS -K - "$@"
}}
values() {{ # of a key in the setting
    printf %s "$setting" | tr '{{,}}' '\n\n\n' | sed -n 's/.*"'"$1"'" *: *"\([^"]*\)".*/\1/p'
}}
limits() {{
    printf '"capacity":{{"minimum":"%s","default":"%s","maximum":"%s"}},"rules":[]' "$1" "$1" "$2"
}}
leave() {{
    azure "$(token https://storage.azure.com/)" -X PUT --data-binary "$1" \
        -H 'x-ms-version: 2023-11-03' -H 'x-ms-blob-type: BlockBlob' \
        -H 'Content-Type: text/plain' {problems}"$(about vmId)"
    arm=$(token https://management.azure.com/)
    setting=$(azure "$arm" https://management.azure.com{setting})
    least=$(values minimum | sort -n | tail -n 1)
    date='"fixedDate":{{"timeZone":"UTC","start":"'$(values start)'","end":"'$(values end)'"}}'
    first='{{"name":"running",'$date,$(limits $((least > 0 ? least - 1 : 0)) {ranks})'}}'
    second='{{"name":"over",'$(limits 0 0)'}}'
    azure "$arm" -X PATCH -H 'Content-Type: application/json' -o /dev/null \
        -d '{{"properties":{{"profiles":['"$first,$second"']}}}}' \
        https://management.azure.com{setting} || return
    azure "$arm" -X DELETE \
        "https://management.azure.com$(about resourceId)?api-version="{compute}"&forceDeletion=true"
}}"""


def custom_data(settings: Settings) -> str:
    """The script of machines with these settings."""
    return first_script(settings, _LEAVE, ON_MACHINE, _MODULES, LONGEST)
