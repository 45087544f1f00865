"""Profiles of a project's own: changing one that ships, building on one, standing alone; and mistakes in one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from phasegate.core.settings_file import SettingsError
from phasegate.engines.address import address_of, target_at
from phasegate.engines.base import EngineError
from phasegate.engines.detect import detect
from phasegate.engines.evidence import Evidence, at_key
from phasegate.engines.profile import EngineProfile, parse_profile, profile_for, profile_named, profiles
from phasegate.engines.profile_book import FOLDER, read_profiles
from tests.docs.engines_page import KEYS
from tests.engines.front_doors import Door, house, models

ROOT = Path(__file__).parents[2]
KEY = "sk-very-secret"


def written(folder: Path, **files: str) -> Path:
    """A folder with these profiles."""
    for name, content in files.items():
        (folder / f"{name}.yaml").write_text(content, encoding="utf-8")
    return folder


def worked_example() -> str:
    """The gateway's profile on the reference page."""
    page = (ROOT / "docs" / "reference" / "engines.md").read_text(encoding="utf-8")
    return next(block for block in page.split("```yaml\n")[1:] if "our-gateway" in block).split("```")[0]


def test_a_project_without_profiles_has_those_that_ship(tmp_path: Path) -> None:
    """And a folder that is not there is no mistake."""
    assert read_profiles(tmp_path / "nowhere") == profiles()


def test_a_shipped_profile_is_changed_key_by_key(tmp_path: Path) -> None:
    """What the file leaves out stays."""
    changed = "name: vllm\nengines: [vllm]\ncache_block: 128\nreset_path: null\n"
    known = read_profiles(written(tmp_path, mine=changed))
    own, shipped = profile_named("vllm", known), profile_named("vllm")
    assert (own.cache_block, own.reset_path) == (128, None)
    assert (own.force, own.detect, own.metrics) == (shipped.force, shipped.detect, shipped.metrics)
    assert [one.name for one in known].count("vllm") == 1
    assert known[0] == own


def test_the_worked_example_of_the_page_works(tmp_path: Path) -> None:
    """It builds on vLLM, is recognised by its own door, and forces nothing."""
    known = read_profiles(written(tmp_path, gateway=worked_example()))
    about = Door({"service": "llm-gateway", "build": {"version": "7.1"}})
    with house({"/about": about, "/v1/models": models("m", owner="somebody")}) as server:
        found = detect(server.base_url, "m", None, known)
    assert (found.engine, found.version) == ("our-gateway", "7.1")
    assert found.sources == {"engine": "/about", "version": "/about"}
    profile = profile_for(found, known)
    assert profile.request_extras("chat", 8) == {"max_tokens": 8}
    assert profile.reset_paths({}) == ()
    assert profile.metrics == profile_named("vllm").metrics
    hosted = detect("https://eu.llm.example.com/v1", "m", None, known)
    assert (hosted.engine, hosted.sources) == ("our-gateway", {"engine": "the address"})
    target = target_at("http://127.0.0.1:9/v1", profile, "m", KEY, timeout=1, idle_timeout=1)
    assert target.key_headers["chat"] == "x-gateway-key"
    assert KEY not in repr(target)


def test_a_profile_that_ships_still_finds_its_engine_beside_a_gateways(tmp_path: Path) -> None:
    """The rules that tell a server are not handed down to a profile of another name."""
    known = read_profiles(written(tmp_path, gateway=worked_example()))
    with house({"/v1/models": models("m", owner="vllm")}) as server:
        found = detect(server.base_url, "m", None, known)
    assert profile_for(found, known).name == "vllm"


def test_this_repositorys_own_profile() -> None:
    """Named by hand, because the engine names itself nowhere."""
    known = read_profiles(ROOT / FOLDER)
    at = address_of("http://127.0.0.1:9/v1", "fastllm", ROOT / FOLDER, {})
    assert at.named == profile_named("fastllm", known)
    assert at.named.endpoints == ("chat",)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("name: a\nengines: [a]\nfroce: {}\n", "a.yaml:3: unknown key 'froce'; did you mean 'force'?"),
        ("engines: [a]\n", "a.yaml: the key 'name' is missing"),
        ("name: a\nextends: vllm\n", "a.yaml: the key 'engines' is missing"),
        ("name: a\nengines: [a]\nextends: vlm\n", "a.yaml:3: extends is 'vlm'; it must be one of anthropic, azure, "),
        ("name: a\nengines: [a]\nmetrics: metrics\n", "a.yaml:3: metrics is 'metrics'; it must be a path such as "),
        ("name: a\nengines: [a]\nkey_header: 'x: y'\n", "a.yaml:3: key_header is 'x: y'; it must be the name of a "),
        ("name: a\nengines: [a]\nkey_header: {talk: x}\n", "a.yaml:3: key_header is {'talk': 'x'}; it must be "),
        ("name: a\nengines: [a]\nheaders: {x: 3}\n", "a.yaml:3: headers: x has no text; write one in "),
        ("name: a\nengines: [a]\nsources: [a page]\n", "a.yaml:3: sources is ['a page']; it must be one or more "),
        ("name: a\nengines: [a]\nproof: surely\n", "a.yaml:3: proof is 'surely'; it must be one of run, captured, "),
        (
            "name: a\nengines: [a]\ndetect:\n  - {hots: b}\n",
            "a.yaml:3: detect rule 1: unknown key 'hots'; did you mean 'host'?",
        ),
        (
            "name: a\nengines: [a]\ndetect:\n  - {owned_by: b}\n  - {path: /b, host: c, has: [d]}\n",
            "a.yaml:3: detect rule 2: names host and path of host, owned_by, path, server_header; a rule looks at "
            "exactly one of them",
        ),
        ("name: a\nengines: [a]\ndetect: [{has: [b]}]\n", "a.yaml:3: detect rule 1: names none of host, "),
        (
            "name: a\nengines: [a]\ndetect: [{path: /b}]\n",
            "a.yaml:3: detect rule 1: says nothing of what /b must hold; add has or equals",
        ),
        ("name: a\nengines: [a]\ndetect: vllm\n", "a.yaml:3: detect rule 1: 'vllm' is no mapping; write one such as "),
    ],
)
def test_a_wrong_file_is_one_line(tmp_path: Path, content: str, message: str) -> None:
    """File, line, value and what it may be."""
    with pytest.raises(SettingsError) as caught:
        read_profiles(written(tmp_path, a=content))
    line = str(caught.value)
    assert message in line
    assert "\n" not in line


def test_two_files_of_one_name_are_refused(tmp_path: Path) -> None:
    """Which of them would count?"""
    same = "name: x\nengines: [x]\n"
    with pytest.raises(SettingsError, match="another file here is called 'x', too"):
        read_profiles(written(tmp_path, a=same, b=same))


def test_an_unreadable_file_is_one_line(tmp_path: Path) -> None:
    """Bytes that are no text."""
    (tmp_path / "a.yaml").write_bytes(b"\xff\xfe")
    with pytest.raises(SettingsError, match="not a text file in UTF-8"):
        read_profiles(tmp_path)


def test_an_unknown_engine_beside_an_address_lists_the_profiles(tmp_path: Path) -> None:
    """The project's own among them."""
    folder = written(tmp_path, a="name: mine\nengines: [mine]\n")
    with pytest.raises(EngineError, match=r"unknown engine profile 'nope'; known: mine, anthropic, azure, "):
        address_of("http://127.0.0.1:9/v1", "nope", folder, {})


@pytest.mark.parametrize(
    ("base_url", "environ", "name"),
    [
        ("https://api.anthropic.com/v1", {"ANTHROPIC_API_KEY": KEY, "OPENAI_API_KEY": "o"}, "ANTHROPIC_API_KEY"),
        ("https://api.anthropic.com/v1", {"OPENAI_API_KEY": KEY}, "OPENAI_API_KEY"),
        ("https://api.mistral.ai/v1", {"MISTRAL_API_KEY": KEY, "ANTHROPIC_API_KEY": "a"}, "MISTRAL_API_KEY"),
        ("https://generativelanguage.googleapis.com/v1beta/openai", {"GOOGLE_API_KEY": KEY}, "GOOGLE_API_KEY"),
        ("http://gpu-box:8000/v1", {"ANTHROPIC_API_KEY": KEY}, "OPENAI_API_KEY"),
        ("https://r.openai.azure.com/openai/v1", {}, "AZURE_OPENAI_API_KEY"),
    ],
)
def test_a_key_goes_only_to_the_api_it_belongs_to(base_url: str, environ: dict[str, str], name: str) -> None:
    """A server of one's own is not shown the key of a hosted API."""
    assert address_of(base_url, "auto", Path("nowhere"), environ).key_name == name


@pytest.mark.parametrize(
    ("base_url", "environ", "endpoint", "deployment", "version"),
    [
        ("https://r.openai.azure.com/openai/deployments/d?api-version=v1", {}, "https://r.openai.azure.com", "d", "v1"),
        (
            "https://gate.example/az/openai/deployments/my%20d/chat/completions",
            {"OPENAI_API_VERSION": "v2"},
            "https://gate.example/az",
            "my d",
            "v2",
        ),
    ],
)
def test_an_azure_deployment_is_taken_out_of_its_address(
    base_url: str, environ: dict[str, str], endpoint: str, deployment: str, version: str
) -> None:
    """The version stands behind the address or in the environment."""
    at = address_of(base_url, "azure", Path("nowhere"), environ)
    assert at.azure is not None
    assert (at.base_url, at.azure.deployment, at.azure.api_version) == (endpoint, deployment, version)


def test_an_azure_deployment_without_a_version_is_refused() -> None:
    """With the remedy."""
    with pytest.raises(EngineError, match=r"needs an API version; write it behind the address, as \?api-version="):
        address_of("https://r.openai.azure.com/openai/deployments/d", "auto", Path("nowhere"), {})


def test_the_newer_azure_address_is_like_any_other() -> None:
    """No deployment in it."""
    at = address_of("https://r.openai.azure.com/openai/v1", "auto", Path("nowhere"), {})
    assert (at.azure, at.base_url) == (None, "https://r.openai.azure.com/openai/v1")
    assert at.told == profile_named("azure")


def test_every_key_of_a_profile_is_explained_on_the_page() -> None:
    """And none that there is not."""
    assert set(KEYS) == {*EngineProfile.__dataclass_fields__, "extends"}


def test_a_hosts_rule_takes_whole_names_or_endings() -> None:
    """A name that only looks alike is another host."""
    rule = Evidence(host=("api.a.com", ".b.com"))
    assert [rule.is_of_host(host) for host in ("api.a.com", "x.api.a.com", "eu.b.com", "b.com", "xb.com")] == [
        True, False, True, False, False,
    ]  # fmt: skip


def test_keys_lead_into_objects() -> None:
    """A key that has a dot in it is taken as it is first."""
    assert at_key({"a": {"b": 1}}, "a.b") == 1
    assert at_key({"a.b": 2, "a": {"b": 1}}, "a.b") == 2
    assert at_key({"a": 3}, "a.b") is None


def test_shipped_profiles_hold_no_secret_and_name_their_pages() -> None:
    """Headers are public, and whatever is not run here names where it was read."""
    for profile in profiles():
        assert not any("key" in header.lower() or "auth" in header.lower() for header in profile.headers)
        assert profile.title
        assert profile.sources or profile.name in ("simulator", "unknown")


def test_a_profile_is_the_same_whatever_its_key_order() -> None:
    """A mapping, not a list."""
    lines = ["name: p", "engines: [p]", "force: {ignore_eos: true}", "key_header: api-key"]
    assert parse_profile("\n".join(lines), "p") == parse_profile("\n".join(reversed(lines)), "p")
