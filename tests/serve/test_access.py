"""Who may ask: keys, tokens, tenants, origins and rates."""

import base64
import hashlib
import hmac
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.testclient import TestClient

from telic.completion import PrefixIndex
from telic.completion.engine.filters import Contexts
from telic.errors import InputError
from telic.serve import Settings, create_app
from telic.serve.callers.access import Access
from telic.serve.callers.hosts_and_origins import refuse_other_origins
from telic.serve.callers.rates import Rates, network_of
from telic.serve.callers.tenant_keys import MAX_PORT, Tenant, add_key, checked_origin, read_tenants
from telic.serve.callers.tokens import TokenError, _mac, digest_of, read_token, sign_user
from telic.serve.http.errors import Problem
from telic.serve.state.store import Store

SHOP, FORUM = "https://shop.example", "https://forum.example"


@pytest.fixture
def keys(tmp_path):
    """Two tenants' keys, and the file that the service knows them by."""
    file = tmp_path / "keys.toml"
    shop = add_key(file, "shop", origins=[SHOP], visitors=True)
    return file, shop, add_key(file, "forum", origins=[FORUM])


@pytest.fixture
def locked(completer, settings, keys):
    """Give a client of a service with keys."""
    app = create_app(completer, replace(settings, keys=str(keys[0])))
    with TestClient(app, base_url="http://127.0.0.1:8000") as client:
        yield client


def bearer(proof):
    return {"authorization": f"Bearer {proof}"}


def refused(response, status, code):
    assert response.status_code == status, response.text
    assert response.json()["error"]["code"] == code
    assert ("www-authenticate" in response.headers) == (status == 401)


def signed_by_definition(key, user, expires):
    """The token as its documentation says it, with nothing of ours."""

    def letters(content):
        return base64.urlsafe_b64encode(content).decode().rstrip("=")

    digest = hashlib.sha256(key.encode()).hexdigest()
    said = f"t1.{digest[:16]}.{expires}.{letters(user.encode())}"
    mac = hmac.new(digest.encode(), said.encode(), hashlib.sha256).digest()
    return f"{said}.{letters(mac)}"


@given(st.text(min_size=1, max_size=40).filter(lambda s: s.isprintable()), st.integers(1, 10**6))
def test_a_token_is_what_its_documentation_says(user, seconds):
    token = sign_user("telic_k", user, seconds=seconds, now=0.0)
    assert token == signed_by_definition("telic_k", user, seconds)
    digest = digest_of("telic_k")
    assert read_token(token, {digest[:16]: digest}, seconds - 1) == (digest, user)
    with pytest.raises(TokenError, match="expired"):
        read_token(token, {digest[:16]: digest}, seconds)


@given(st.data())
def test_a_token_that_was_changed_anywhere_proves_nothing(data):
    token = sign_user("telic_k", "ada", seconds=60, now=0.0)
    at = data.draw(st.integers(0, len(token) - 1))
    other = data.draw(st.characters(max_codepoint=0x2FF).filter(lambda c: c != token[at]))
    digest = digest_of("telic_k")
    with pytest.raises(TokenError):
        read_token(token[:at] + other + token[at + 1 :], {digest[:16]: digest}, 0.0)


@pytest.mark.parametrize("proof", [None, "", "telic_guessed", "t1.0.0.0.0", "é", "t1...."])
@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/suggest?q=s"), ("POST", "/suggest"), ("POST", "/submit"), ("GET", "/about")],
)
def test_without_proof_nothing_is_answered(locked, method, path, proof):
    headers = {} if proof is None else {"authorization": f"Bearer {proof}".encode("latin-1")}
    body = {"json": {"q": "s"}} if method == "POST" else {}
    code = "no_key" if proof is None else "bad_token"
    refused(locked.request(method, path, headers=headers, **body), 401, code)


def test_anothers_token_reads_and_trains_nothing(locked, completer, settings, keys):
    _, shop, _ = keys
    ada = {"user": "ada", "composition": "c", "query": "soup"}
    assert locked.post("/submit", json=ada, headers=bearer(shop)).status_code == 200
    mallory = bearer(sign_user(shop, "mallory"))
    expired = bearer(sign_user(shop, "ada", seconds=-1))
    forged = bearer(signed_by_definition("telic_other", "ada", int(time.time()) + 60))
    for headers, status, code in (
        (mallory, 403, "another_user"),
        (expired, 401, "bad_token"),
        (forged, 401, "bad_token"),
    ):
        refused(locked.get("/suggest?q=s&user=ada&composition=x", headers=headers), status, code)
        for path in ("/suggest", "/submit"):
            refused(locked.post(path, json=ada, headers=headers), status, code)
    store = Store(settings.database, completer)
    assert store.read("shop:ada").version == 1
    assert store.read("shop:mallory") is store.read("ada") is None
    store.close()


def test_tenants_that_share_all_phrases_are_said(completer, settings, keys, caplog):
    create_app(completer, replace(settings, keys=str(keys[0])))
    assert "to all 2 of them" in caplog.text
    caplog.clear()
    apart = Contexts.of({"tenant": [None] * len(completer.index)})
    create_app(replace(completer, contexts=apart), replace(settings, keys=str(keys[0])))
    assert "to all" not in caplog.text


def test_users_whose_tenant_has_no_key_are_said(completer, settings, keys, caplog):
    """A log without tenants, and a key for `shop`: its users would be told apart from the log's."""
    kept = replace(settings, keys=str(keys[0]))
    ada = completer.user()
    create_app(replace(completer, users={"shop:ada": ada, "ada": ada, "urn:1": ada}), kept)
    assert "no key (default, urn)" in caplog.text
    assert "nobody is shown their histories" in caplog.text
    assert "tenant 'default'" in caplog.text
    caplog.clear()
    create_app(replace(completer, users={"shop:ada": ada}), kept)
    create_app(replace(completer, users={"ada": ada}), settings)
    add_key(keys[0], "default")
    create_app(replace(completer, users={"shop:ada": ada, "ada": ada}), kept)
    assert "histories" not in caplog.text


def test_a_token_says_who_asks(locked, keys):
    token = bearer(sign_user(keys[1], "ada"))
    search = {"composition": "c", "query": "soup"}
    assert locked.post("/submit", json=search, headers=token).json()["updates"] == 0
    unnamed = search | {"composition": "b", "user": None}  # as from a client whose user is not set
    assert locked.post("/submit", json=unnamed, headers=token).status_code == 200
    answer = locked.get("/suggest?q=s&composition=d&explain=1", headers=token).json()
    assert answer[1][0] == "soup"
    by_key = locked.get("/suggest?q=s&composition=e&user=ada", headers=bearer(keys[1])).json()
    assert by_key[1] == answer[1]


def test_what_nobody_typed_here_is_spelled_as_its_tenants_phrases_are(completer, settings, keys):
    index, _ = PrefixIndex.build_ordered(["Blue BIRD", "blue bird"], [2.0, 1.0])
    contexts = Contexts.of({"tenant": ["shop", "forum"]})
    apart = replace(completer, index=index, contexts=contexts, merged=True, users={})
    with TestClient(
        create_app(apart, replace(settings, keys=str(keys[0]))), base_url="http://127.0.0.1:8000"
    ) as client:
        given = {"user": "eve", "composition": "c", "query": "blue BIRD"}
        for key in keys[1:]:
            client.post("/submit", json=given, headers=bearer(key)).raise_for_status()
        store = Store(settings.database, apart)
        assert list(store.read("forum:eve").state.history) == ["blue bird"]
        assert list(store.read("shop:eve").state.history) == ["Blue BIRD"]
        store.close()


def test_tenants_users_are_apart(locked, completer, settings, keys):
    _, shop, forum = keys
    given = {"user": "ada", "composition": "c", "query": "soup"}
    for key in (shop, forum):
        assert locked.post("/submit", json=given, headers=bearer(key)).status_code == 200
    store = Store(settings.database, completer)
    assert store.read("shop:ada").version == store.read("forum:ada").version == 1
    assert store.forget("forum:ada")[0] == 2
    store.close()


def test_pages_of_named_origins_may_ask(locked, keys):
    for origin, may in ((SHOP, True), (FORUM, True), ("https://evil.example", False)):
        asks = {"origin": origin, "access-control-request-method": "POST"}
        answer = locked.options("/suggest", headers=asks)
        assert answer.status_code == 204
        assert (answer.headers.get("access-control-allow-origin") == origin) == may
        assert ("access-control-allow-methods" in answer.headers) == may
        assert answer.headers.get("access-control-max-age") == ("7200" if may else None)
        assert "access-control-allow-credentials" not in answer.headers
        for response in (
            locked.get("/suggest?q=s", headers=bearer(keys[1]) | {"origin": origin}),
            locked.get("/suggest?q=s", headers={"origin": origin}),
            locked.get("/livez", headers={"origin": origin}),
        ):
            assert (response.headers.get("access-control-allow-origin") == origin) == may
            assert "origin" in response.headers["vary"].lower()
        from_page = bearer(keys[1]) | {"origin": origin, "sec-fetch-site": "cross-site"}
        response = locked.post("/suggest", json={"q": "s"}, headers=from_page)
        assert response.status_code == (200 if may else 403)
    # A browser keeps the script that a page loaded without its origin, and may show it to others.
    assert locked.get("/static/telic-search.js").headers["vary"] == "Origin"


@pytest.mark.parametrize("origin", ["null", "http://[", "http://127.0.0.1:8000.evil.example"])
@pytest.mark.parametrize("path", ["/suggest", "/submit", "/visitor"])
def test_what_is_no_origin_of_ours_may_not_ask(locked, keys, path, origin):
    headers = bearer(keys[1]) | {"origin": origin}
    refused(locked.post(path, json={"q": "s"}, headers=headers), 403, "cross_origin")


def test_visitors_are_users_of_a_random_id(locked, keys):
    one, two = (locked.post("/visitor", headers={"origin": SHOP}).json() for _ in range(2))
    assert one["user"] != two["user"]
    given = {"composition": "c", "query": "soup"}
    assert locked.post("/submit", json=given, headers=bearer(one["token"])).status_code == 200
    taken = given | {"user": one["user"]}
    refused(locked.post("/submit", json=taken, headers=bearer(two["token"])), 403, "another_user")
    refused(locked.post("/visitor", headers={"origin": FORUM}), 403, "no_visitors")
    refused(locked.post("/visitor"), 403, "no_visitors")
    refused(
        locked.post("/visitor", headers={"origin": "https://evil.example"}), 403, "cross_origin"
    )


def test_who_asks_too_often_is_told_to_wait(completer, settings, keys):
    limits = replace(settings, keys=str(keys[0]), rate=0.01, burst=2, key_rate=0.01)
    with TestClient(create_app(completer, limits), base_url="http://127.0.0.1:8000") as client:
        for headers, first in ((bearer("guess"), 401), (bearer(keys[1]), 200)):
            answers = [client.get("/suggest?q=s", headers=headers) for _ in range(3)]
            assert [answer.status_code for answer in answers] == [first, first, 429]
            assert int(answers[-1].headers["retry-after"]) in range(90, 101)
        # Another key's requests, and another address's, are their own.
        assert client.get("/suggest?q=s", headers=bearer(keys[2])).status_code == 200
        other = TestClient(client.app, base_url="http://localhost", client=("192.0.2.9", 1))
        assert other.post("/visitor", headers={"origin": SHOP}).status_code == 200


@given(
    st.lists(st.tuples(st.floats(0, 3), st.sampled_from("ab")), max_size=60),
    st.floats(0.1, 5),
    st.integers(1, 4),
)
def test_rates_are_token_buckets(steps, rate, burst):
    now = 0.0
    rates = Rates(rate, burst, 10, clock=lambda: now)
    buckets = dict.fromkeys("ab", (float(burst), 0.0))
    for pause, who in steps:
        now += pause
        tokens, then = buckets[who]
        tokens = min(burst, tokens + (now - then) * rate)
        wait = rates.wait(who)
        if abs(tokens - 1) > 1e-6:  # else rounding decides
            assert (wait == 0) == (tokens >= 1)
        if wait == 0:
            tokens -= 1
        else:
            assert (wait - 1) * rate < 1 - tokens + 1e-6 <= wait * rate + 1e-5
        buckets[who] = (tokens, now)


def test_rates_take_bounded_memory():
    rates = Rates(1.0, 1, 100)
    for i in range(1_000):
        rates.wait(str(i))
    assert len(rates) == 100
    assert rates.wait("999") > 0


def test_the_bucket_that_was_used_longest_ago_is_forgotten():
    rates = Rates(1.0, 1_000, 2, clock=lambda: 0.0)
    for who in "abaca":
        assert rates.wait(who) == 0
    assert list(rates._full_at) == ["c", "a"]


def test_a_subscribers_addresses_are_one():
    assert network_of("2001:db8::1") == network_of("2001:db8::ffff:1") != network_of("2001:db9::1")
    assert network_of("::ffff:192.0.2.1") == "192.0.2.1"


def test_without_keys_only_this_machine_is_listened_to(completer, settings):
    with pytest.raises(InputError, match=r"0\.0\.0\.0 without keys.*--without-keys"):
        create_app(completer, replace(settings, host="0.0.0.0"))
    create_app(
        completer, replace(settings, host="0.0.0.0", without_keys=True)
    ).journal._store.close()


def test_the_file_of_keys_holds_no_key_and_is_its_owners(keys):
    file, shop, forum = keys
    text = file.read_text()
    assert shop not in text
    assert forum not in text
    assert file.stat().st_mode & 0o077 == 0
    second = add_key(file, "shop")
    assert second != shop
    tenant = read_tenants(file)["shop"]
    assert tenant.keys == (digest_of(shop), digest_of(second))
    assert (tenant.origins, tenant.visitors, tenant.admin) == ((SHOP,), True, False)


DIGEST = "a" * 64


@pytest.mark.parametrize(
    "by_hand",
    [
        "",
        "# Ours. Ask Ann.",
        "[forum]\nvisitors = true",
        f'# Ours.\n[shop]\nkeys = ["{DIGEST}"] # the page\norigins = ["{SHOP}"]\n',
        f'[shop]\nkeys = [\n    "{DIGEST}"  # the page\n    # another one to come\n]\n# end\n',
        f'shop = {{keys = ["{DIGEST}"]}}\n',
        "[shop]\r\nkeys = []\r\n# ours\r\n[forum]\r\n",
    ],
)
def test_a_new_key_leaves_the_rest_of_the_file_as_it_is_written(tmp_path, by_hand):
    file = tmp_path / "keys.toml"
    file.write_bytes(by_hand.encode())
    file.chmod(0o600)
    before = read_tenants(file)
    old = before.pop("shop", Tenant("shop"))
    keys = add_key(file, "shop", origins=[f"{SHOP.upper()}/"]), add_key(file, "shop", admin=True)
    after = read_tenants(file)
    digests = (*old.keys, *map(digest_of, keys))
    assert after.pop("shop") == Tenant("shop", digests, (SHOP,), admin=True)
    assert after == before
    comments = [line[line.index("#") :] for line in by_hand.splitlines() if "#" in line]
    assert all(comment in file.read_text() for comment in comments)
    written = file.read_bytes()
    with pytest.raises(InputError, match="no origin"):
        add_key(file, "forum", origins=["x"])
    with pytest.raises(InputError, match="named by at most 32"):
        add_key(file, "Forum")
    assert file.read_bytes() == written
    assert [each.name for each in tmp_path.iterdir()] == ["keys.toml"]
    assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ("https://Shop.example:443/", "https://shop.example"),
        ("http://shop.example:80", "http://shop.example"),
        ("https://shop.example:80", "https://shop.example:80"),
        ("http://localhost:03000", "http://localhost:3000"),
        ("https://[::1]:8443", "https://[::1]:8443"),
        (f"http://shop.example:{MAX_PORT}", f"http://shop.example:{MAX_PORT}"),
        ("https://xn--bcher-kva.example", "https://xn--bcher-kva.example"),
    ],
)
def test_an_origin_is_kept_as_browsers_send_it(given, sent):
    assert checked_origin(given, "keys.toml") == sent


@pytest.mark.parametrize(
    "given",
    [
        "https://bücher.example", "https://shop.example:", "https://shop.example:x",
        f"https://shop.example:{MAX_PORT + 1}", "https://a b", "https://shop.example/path", "https://u@shop",
        "https://*.shop.example", "ftp://shop.example", "null", "https://", "",
    ],
)  # fmt: skip
def test_what_no_browser_sends_is_no_origin(given):
    with pytest.raises(InputError, match="is no origin, expected https://NAME"):
        checked_origin(given, "keys.toml")


def test_a_key_is_added_to_the_file_that_a_link_names(tmp_path):
    file, link = tmp_path / "secrets" / "keys.toml", tmp_path / "keys.toml"
    file.parent.mkdir()
    link.symlink_to(file)
    keys = add_key(link, "shop"), add_key(link, "shop")
    assert link.is_symlink()
    assert read_tenants(file)["shop"].keys == tuple(map(digest_of, keys))


def test_keys_that_are_added_at_once_are_all_kept(tmp_path):
    file = tmp_path / "keys.toml"
    with ThreadPoolExecutor(8) as pool:
        keys = list(pool.map(lambda _: add_key(file, "shop"), range(40)))
    assert sorted(read_tenants(file)["shop"].keys) == sorted(map(digest_of, keys))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[shop", "is no TOML"),
        ("[Shop]", r"\[Shop\]: expected a table named"),
        ("shop = 1", r"\[shop\]: expected a table"),
        ("[shop]\nkey = []", "'key' is unknown, expected admin, editor, keys, origins, visitors"),
        ("[shop]\nkeys = ['secret']", "no SHA-256"),
        ("[shop]\nvisitors = 1", "'visitors' is 1, expected true or false"),
        ("[shop]\norigins = 'x'", "'origins' is 'x', expected a list"),
        ("[shop]\norigins = ['https://a.example/b']", "no origin"),
        ("[shop]\norigins = ['*']", "no origin"),
        ("[shop]\norigins = ['https://*']", "no origin"),
        ("[shop]\norigins = ['https://*.example']", "no origin"),
        ("[shop]\norigins = ['https://[::1']", "no origin"),
        ("[shop]\norigins = ['https://ann@shop.example']", "no origin"),
        (
            f"[shop]\nkeys = ['{'a' * 64}']\n[desk]\nkeys = ['{'a' * 64}']",
            r"\[desk\]: the key aaaaaaaa… is \[shop\]'s, too",
        ),
    ],
)
def test_a_wrong_file_of_keys_is_said_to_be(tmp_path, text, said):
    file = tmp_path / "keys.toml"
    file.write_text(text)
    file.chmod(0o600)
    with pytest.raises(InputError, match=said):
        read_tenants(file)
    with pytest.raises(InputError, match=said):
        add_key(file, "forum")
    assert file.read_text() == text


def test_a_file_of_keys_that_others_can_read_is_refused(keys):
    keys[0].chmod(0o644)
    with pytest.raises(InputError, match="chmod 600"):
        read_tenants(keys[0])
    with pytest.raises(InputError, match="cannot be read"):
        read_tenants(keys[0].with_name("none.toml"))


def test_origins_may_be_named_without_keys(completer):
    with pytest.raises(InputError, match="no origin"):
        create_app(completer, Settings.beside("box", origins=("shop.example",)))


def test_a_visitors_token_is_good_for_thirty_days(settings, keys):
    now = 1_000.0
    access = Access(replace(settings, keys=str(keys[0])), clock=lambda: now)
    made = access.visitor({"client": None}, {b"origin": SHOP.encode()})
    assert made["expires"] == now + 30 * 86_400
    headers = {b"authorization": b"Bearer " + made["token"].encode()}
    now = made["expires"] - 1
    assert access.caller({}, headers).user == made["user"]
    now += 1
    with pytest.raises(Problem, match="expired"):
        access.caller({}, headers)


@pytest.mark.parametrize(("expires", "user"), [("soon", "YWRh"), ("9", "_w")])
def test_a_token_that_was_signed_and_cannot_be_read_proves_nothing(expires, user):
    digest = digest_of("telic_k")
    said = f"t1.{digest[:16]}.{expires}.{user}"
    with pytest.raises(TokenError, match="user or time cannot be read"):
        read_token(f"{said}.{_mac(digest, said)}", {digest[:16]: digest}, 0.0)


@pytest.mark.parametrize("site", [None, "same-origin", "none", "same-site", "cross-site"])
@pytest.mark.parametrize("origin", [None, "http://box.example", SHOP, "https://evil.example"])
def test_a_post_comes_from_our_own_page_or_one_that_may_ask(settings, origin, site):
    headers = {b"host": b"box.example"}
    if origin:
        headers[b"origin"] = origin.encode()
    if site:
        headers[b"sec-fetch-site"] = site.encode()
    access = Access(replace(settings, origins=(SHOP,)))
    foreign = origin == "https://evil.example" or site in ("same-site", "cross-site")
    if foreign and origin != SHOP:
        with pytest.raises(Problem, match="Posts from this page's site are refused"):
            refuse_other_origins(access, headers)
    else:
        refuse_other_origins(access, headers)
