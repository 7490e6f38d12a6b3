from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbus.errors import BY_CODE, AgentbusError, InternalError
from agentbus.wire import error_codes
from agentbus.wire.error_codes import ErrorData, Failure, RpcError

ERRORS = st.builds(
    lambda kind, message, reason, after: kind(message, reason=reason, retry_after_ms=after),
    st.sampled_from(sorted(BY_CODE.values(), key=lambda kind: kind.code)),
    st.text(max_size=40),
    st.none() | st.text(max_size=20),
    st.none() | st.integers(0, 10**9),
)


def facts(error: AgentbusError) -> tuple[object, ...]:
    return type(error), error.message, error.reason, error.retry_after_ms


@given(ERRORS)
def test_an_error_comes_out_of_an_internal_frame_as_it_went_in(error):
    body = msgspec.msgpack.encode(error_codes.to_failure(error))
    again = error_codes.from_failure(msgspec.msgpack.decode(body, type=Failure))
    assert facts(again) == facts(error)


@given(ERRORS)
def test_an_error_comes_out_of_json_rpc_as_it_went_in(error):
    line = msgspec.json.encode(error_codes.to_rpc(error))
    data = msgspec.convert(msgspec.json.decode(line, type=RpcError).data, ErrorData)
    assert facts(error_codes.from_data(data)) == facts(error)


@given(ERRORS)
def test_what_is_shown_says_whether_trying_again_can_help(error):
    assert error_codes.to_data(error).retryable is BY_CODE[error.code].retryable


@given(ERRORS)
def test_application_errors_share_one_json_rpc_code_and_repeat_the_message(error):
    shown = error_codes.to_rpc(error)
    assert (shown.code, shown.message) == (error_codes.APPLICATION_ERROR, error.message)


def test_a_code_of_a_newer_version_becomes_an_internal_error():
    error = error_codes.from_failure(Failure("invented_later", "text"))
    assert isinstance(error, InternalError)
    assert error.message == "text"


def test_absent_facts_are_absent_members():
    assert msgspec.json.decode(msgspec.json.encode(error_codes.to_data(InternalError("x")))) == {
        "code": "internal",
        "message": "x",
        "retryable": False,
    }


def test_an_error_without_application_code_has_no_data():
    line = msgspec.json.encode(RpcError(error_codes.PARSE_ERROR, "not JSON"))
    assert msgspec.json.decode(line) == {"code": -32700, "message": "not JSON"}


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("PARSE_ERROR", -32700),
        ("INVALID_REQUEST", -32600),
        ("METHOD_NOT_FOUND", -32601),
        ("INVALID_PARAMS", -32602),
    ],
)
def test_protocol_errors_have_the_numbers_of_json_rpc(name, number):
    assert getattr(error_codes, name) == number
