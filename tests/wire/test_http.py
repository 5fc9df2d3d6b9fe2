from wireglot.wire.http import WireRequest, WireResponse


def test_headers_are_found_in_any_case():
    request = WireRequest("POST", "/v1/messages", (("Content-Type", "a"), ("content-type", "b")))
    assert request.header("CONTENT-TYPE") == "a"
    assert request.header("accept") is None
    assert WireResponse(200, (("X-Id", "1"),)).header("x-id") == "1"
