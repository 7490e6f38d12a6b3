from __future__ import annotations

import pytest

from agentbus import errors
from agentbus.errors import BY_CODE, AgentbusError, InternalError, RateLimited

RETRYABLE = {
    "rate_limited",
    "inspection_unavailable",
    "storage_error",
    "recovering",
    "unavailable",
    "stale_attachment",
    "session_already_connected",
}
NOT_RETRYABLE = {
    "invalid_argument",
    "not_found",
    "channel_kind_conflict",
    "operation_id_conflict",
    "message_too_large",
    "inspection_rejected",
    "capacity_exhausted",
    "config_mismatch",
    "version_mismatch",
    "discovery_disabled",
    "internal",
    "config_invalid",
    "redis_missing",
    "redis_incompatible",
    "database_damaged",
    "unsafe_permissions",
    "not_running",
}


def test_there_is_one_class_for_each_documented_code():
    assert set(BY_CODE) == RETRYABLE | NOT_RETRYABLE


@pytest.mark.parametrize("code", sorted(BY_CODE))
def test_whether_trying_again_can_help_is_as_documented(code):
    assert BY_CODE[code].retryable is (code in RETRYABLE)


@pytest.mark.parametrize("kind", BY_CODE.values(), ids=lambda kind: kind.__name__)
def test_every_error_is_exported_and_says_what_it_means(kind):
    assert kind.__name__ in errors.__all__
    assert kind.__doc__
    assert kind.__doc__ != AgentbusError.__doc__


def test_the_tree_at_the_top_of_the_module_names_every_class():
    for name in set(errors.__all__) - {"BY_CODE"}:
        assert name in (errors.__doc__ or "")


def test_groups_have_no_code_of_their_own():
    groups = {errors.RequestError, errors.BusyError, errors.AttachmentError, errors.SetupError}
    assert groups.isdisjoint(BY_CODE.values())
    assert all(group.code == "internal" for group in groups)


def test_facts_are_fields_and_the_message_is_the_text():
    error = RateLimited("too fast", reason="burst used up", retry_after_ms=40)
    assert (str(error), error.message) == ("too fast", "too fast")
    assert (error.reason, error.retry_after_ms) == ("burst used up", 40)


def test_optional_facts_are_none_unless_given():
    error = InternalError("oops")
    assert (error.reason, error.retry_after_ms) == (None, None)
