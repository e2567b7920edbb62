"""The explorer in a real browser: it opens from disk, everything moves, and what it shows is what PyTorch computes."""

import copy
import time
from dataclasses import replace

import numpy as np
import pytest
import torch
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.actions.action_builder import ActionBuilder
from selenium.webdriver.common.actions.pointer_input import PointerInput
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from torch import nn

import axiswise as aw
from axiswise.data import small_sprites
from axiswise.distributions import Deterministic, DeterministicParameters
from axiswise.exploration._layers import rounded
from axiswise.geometry import column_coherence, dto, gram, haar_chance
from axiswise.models import rotate_latents

pytestmark = pytest.mark.browser

RUNNING = "return window.explorer.measuring"
IMAGE = "return Array.from(explorer.members[arguments[0]].shown)"
CODE = "return Array.from(explorer.members[arguments[0]].z)"


@pytest.fixture(scope="module")
def population():
    """Five members of three seeds on small sprites: trained a little, so that some latents have counterparts."""
    model = aw.models.mlp((1, 16, 16), 4, encoder=(64,), decoder=(64,), activation=nn.ReLU)
    objective = aw.objectives.BetaVAE(0.3)
    members = aw.grid(model=model, objective=objective, optimizer=aw.optimizers.Adam(3e-3), steps=600, seed=range(3))
    return aw.train(members, sprites())


def sprites():
    return small_sprites()


@pytest.fixture(scope="module")
def exploration(population):
    return aw.explore(population, sprites(), title="<i>Sprites</i> & 'more'", points=200)


@pytest.fixture
def page(browser, exploration, tmp_path):
    """The page, opened from disk, when it has drawn and measured everything."""
    browser.get_log("browser")
    browser.get(aw.report.explorer(exploration, tmp_path / "explorer.html").as_uri())
    wait_until(lambda: browser.execute_script(RUNNING) is False)
    yield browser
    wrong = [entry["message"] for entry in browser.get_log("browser")]
    assert wrong == []  # no error, no warning, nothing that was fetched


def wait_until(condition, seconds=30.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "the page does not become ready"
        time.sleep(0.05)


def drawn(browser) -> None:
    """Waits until the page has drawn what was asked for."""
    browser.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(() => arguments[0]()))")


def images(browser, members) -> list[np.ndarray]:
    return [np.array(browser.execute_script(IMAGE, number)) for number in range(len(members))]


def leading_slider(browser):
    return browser.find_element(By.CSS_SELECTOR, "#sliders .latent input[type=range]")


def test_a_start_is_a_reconstruction_as_pytorch_computes_it(page, exploration, population):
    shown = images(page, exploration.running)
    addresses = [trained.member.address for trained in population.trained]
    for number, member in enumerate(exploration.running):
        model = population[addresses.index(member.address)]
        expected = model.reconstruct(torch.from_numpy(exploration.arrays["x"][:1])).flatten().numpy()
        assert np.abs(shown[number] - expected).max() < 2e-3
        assert page.execute_script("return explorer.members[arguments[0]].difference", number) < 2e-3
    first = page.find_element(By.CSS_SELECTOR, "#members > :first-child")
    assert (first.text, first.is_displayed()) == ("original", True)
    red = (
        "return Array.from(document.getElementById('original-image').getContext('2d').getImageData(0, 0, 16, 16).data)"
    )
    pixels, (low, high) = np.array(page.execute_script(red))[::4] / 255, exploration.arrays["range"]
    np.testing.assert_allclose(low + (high - low) * pixels, exploration.arrays["x"][0].flatten(), atol=0.003)
    title = page.find_element(By.TAG_NAME, "h1").text
    assert title == "<i>Sprites</i> & 'more'"  # a name is never markup
    assert (
        page.execute_script("return document.querySelectorAll('[onclick], [oninput], script[src], link').length") == 0
    )


def test_a_slider_moves_the_matched_latents_of_all_members(page, exploration):
    lead, *others = exploration.running
    latent = int(page.find_element(By.CSS_SELECTOR, "#sliders .latent").get_attribute("data-latent"))
    before, codes = images(page, exploration.running), [page.execute_script(CODE, n) for n in range(3)]
    leading_slider(page).send_keys(Keys.ARROW_RIGHT * 4)
    drawn(page)
    after, moved = images(page, exploration.running), [page.execute_script(CODE, n) for n in range(3)]
    step = 4 * (lead.arrays["high"][latent] - lead.arrays["low"][latent]) / 40
    change = moved[0][latent] - codes[0][latent]
    assert change == pytest.approx(step, rel=1e-4)
    spreads = [member.arrays["codes"].std(0) for member in exploration.running]
    assert any(lead.counterparts[1 + number][latent] >= 0 for number in range(len(others)))
    for number in range(1, 3):
        there, correlation = lead.counterparts[number][latent], lead.correlations[number][latent]
        difference = np.array(moved[number]) - np.array(codes[number])
        expected = np.zeros_like(difference)
        if there >= 0:
            expected[there] = np.sign(correlation) * step * spreads[number][there] / spreads[0][latent]
        np.testing.assert_allclose(difference, expected, atol=1e-4)
        assert (np.abs(after[number] - before[number]).max() > 1e-3) == (there >= 0)
    assert np.abs(after[0] - before[0]).max() > 1e-3


def test_matches_are_shown_with_their_strength_and_absent_ones_are_said(page, exploration):
    lead, absent = exploration.running[0], 0
    for row in page.find_elements(By.CSS_SELECTOR, "#sliders .latent"):
        latent = int(row.get_attribute("data-latent"))
        expected, alone = [], []
        for number in range(1, len(exploration.running)):
            there, correlation = lead.counterparts[number][latent], lead.correlations[number][latent]
            letter, sign = "ABC"[number], "(reversed) " if correlation < 0 else ""
            (expected if there >= 0 else alone).append(f"{letter} z{there} {sign}{abs(correlation):.2f}")
        absent += len(alone)
        if alone:
            expected.append(f"no counterpart in {', '.join(text[0] for text in alone)}")
        assert [chip.text for chip in row.find_elements(By.CLASS_NAME, "match")] == expected
    assert absent < 6


def test_passive_latents_are_folded_away_and_the_others_are_ordered_by_their_divergence(page, exploration):
    lead = exploration.running[0]
    rows = page.find_elements(By.CSS_SELECTOR, "#sliders .latent")
    order = [int(row.get_attribute("data-latent")) for row in rows]
    assert order == sorted(order, key=lambda latent: -lead.arrays["kl"][latent])
    assert sorted(order) == np.flatnonzero(lead.arrays["active"]).tolist()
    passive = page.find_element(By.ID, "passive-fold")
    assert passive.is_displayed() == (len(order) < lead.arrays["codes"].shape[1])
    assert not passive.get_attribute("open")


def test_a_typed_value_reset_the_prior_and_other_observations(page, exploration):
    lead = exploration.running[0]
    number = page.find_element(By.CSS_SELECTOR, "#sliders .latent input[type=number]")
    latent = int(page.find_element(By.CSS_SELECTOR, "#sliders .latent").get_attribute("data-latent"))
    number.send_keys(Keys.CONTROL + "a")
    number.send_keys("1.25", Keys.ENTER)
    drawn(page)
    assert page.execute_script(CODE, 0)[latent] == pytest.approx(1.25)
    page.find_element(By.ID, "reset").click()
    drawn(page)
    np.testing.assert_allclose(page.execute_script(CODE, 0), lead.arrays["codes"][0], rtol=1e-5)
    page.find_element(By.CSS_SELECTOR, "[data-start='3']").send_keys(Keys.ENTER)
    drawn(page)
    np.testing.assert_allclose(page.execute_script(CODE, 0), lead.arrays["codes"][3], rtol=1e-5)
    page.find_element(By.CSS_SELECTOR, "[data-start='-1']").click()
    drawn(page)
    assert page.execute_script(CODE, 0) == [0.0] * 4
    assert not page.find_element(By.ID, "original").is_displayed()


def test_playing_moves_a_latent_until_it_is_paused(page):
    latent = int(page.find_element(By.CSS_SELECTOR, "#sliders .latent").get_attribute("data-latent"))
    button = page.find_element(By.CSS_SELECTOR, "#sliders .latent .play")
    button.send_keys(Keys.SPACE)
    values = []
    for _ in range(3):
        time.sleep(0.25)
        values.append(page.execute_script(CODE, 0)[latent])
    assert len(set(values)) == 3
    button.send_keys(Keys.SPACE)
    drawn(page)
    still = page.execute_script(CODE, 0)[latent]
    time.sleep(0.2)
    assert page.execute_script(CODE, 0)[latent] == still


def test_dragging_an_image_and_arrow_keys_on_it_move_two_latents(page):
    across, up = page.execute_script("return [explorer.state.across, explorer.state.up]")
    image = page.find_element(By.CSS_SELECTOR, ".member .image")
    before = page.execute_script(CODE, 0)
    ActionChains(page).move_to_element(image).click_and_hold().move_by_offset(20, -30).release().perform()
    drawn(page)
    after = page.execute_script(CODE, 0)
    assert {place for place in range(4) if after[place] != before[place]} == {across, up}
    assert after[across] > before[across]
    assert after[up] > before[up]
    plain = image.value_of_css_property("outline-color")
    image.send_keys(Keys.ARROW_LEFT)
    drawn(page)
    assert page.execute_script(CODE, 0)[across] < after[across]
    assert image.value_of_css_property("outline-color") != plain  # of the picture that leads, too, one sees the focus


def test_what_is_shown_of_the_latent_in_hand_is_of_one_that_is_dragged(page):
    other = page.find_element(By.CSS_SELECTOR, "#sliders .latent:last-child input[type=range]")
    other.send_keys(Keys.ARROW_RIGHT)
    hand, across, up = page.execute_script("const s = explorer.state; return [s.hand, s.across, s.up]")
    assert hand not in (across, up)
    page.find_element(By.CSS_SELECTOR, ".member .image").send_keys(Keys.ARROW_LEFT)
    drawn(page)
    assert page.find_element(By.ID, "hand").text == f"z{across}"
    assert page.find_element(By.CSS_SELECTOR, ".leading .member-note").text == f"leads: z{across} moves"


def test_what_one_types_stays_when_the_window_changes_its_size(page):
    """As it does on a phone when the keyboard slides in."""
    size = page.get_window_size()
    number = page.find_element(By.CSS_SELECTOR, "#sliders .latent input[type=number]")
    number.send_keys(Keys.CONTROL + "a")
    number.send_keys("1.2")
    page.set_window_size(size["width"] - 100, size["height"] - 300)
    wait_until(lambda: page.execute_script(RUNNING) is False)
    ActionChains(page).send_keys("5", Keys.ENTER).perform()
    drawn(page)
    page.set_window_size(size["width"], size["height"])
    latent = int(page.find_element(By.CSS_SELECTOR, "#sliders .latent").get_attribute("data-latent"))
    assert page.execute_script(CODE, 0)[latent] == pytest.approx(1.25)
    slider = leading_slider(page)
    assert slider.get_attribute("aria-valuetext") == "1.25"  # what a screen reader says


def test_an_update_of_the_window_draws_at_its_size(page):
    size = page.get_window_size()
    widths = "const [one] = arguments; return [one.width, one.clientWidth]"
    page.set_window_size(700, size["height"])  # sliders are as wide as the page
    wait_until(lambda: page.execute_script(RUNNING) is False)
    drawn_at, shown_at = page.execute_script(widths, page.find_element(By.CSS_SELECTOR, "#sliders .histogram"))
    page.set_window_size(size["width"], size["height"])
    assert drawn_at == shown_at > 0


def test_everything_can_be_reached_with_the_keyboard(page):
    name = "const on = document.activeElement; return on.id || on.className || on.type || on.tagName"
    page.execute_script("document.activeElement.blur()")
    reached = []
    while not reached or reached[-1] != "BODY":
        assert len(reached) < 200
        ActionChains(page).send_keys(Keys.TAB).perform()
        reached.append(page.execute_script(name))
    expected = {"start", "reset", "range", "number", "play", "image", "across", "up", "angle", "codes", "lead-button"}
    assert expected <= set(reached)


def test_the_geometry_is_that_of_the_rotated_model(page, exploration, population):
    """With the page's weights, at the page's points: DtO and the share off the diagonal, here and over observations."""
    page.execute_script(
        "const knob = document.getElementById('angle'); knob.value = 25; knob.dispatchEvent(new Event('input'));"
    )
    wait_until(lambda: page.execute_script(RUNNING) is False)
    across, up = page.execute_script("return [explorer.state.across, explorer.state.up]")
    addresses = [trained.member.address for trained in population.trained]
    turned = 0
    for number, member in enumerate(exploration.running):
        lead = exploration.running[0]
        first, second = (lead.counterparts[number][latent] for latent in (across, up))
        angle = np.deg2rad(25.0) * np.prod(np.sign([lead.correlations[number][latent] for latent in (across, up)]))
        rotation = torch.eye(4, dtype=torch.float64)
        if min(first, second) >= 0:
            turned += 1
            c, s = np.cos(angle), np.sin(angle)
            rotation[first, first], rotation[first, second] = c, -s
            rotation[second, first], rotation[second, second] = s, c
        model = copy.deepcopy(population[addresses.index(member.address)])
        for tensor in model.decoder.parameters():
            tensor.data = rounded(tensor.data)
        decode = rotate_latents((model.encode, model.decode), rotation).decoder
        codes = torch.from_numpy(member.arrays["codes"][:8]) @ rotation.float().T
        products = gram(decode, codes)
        active = torch.from_numpy(member.arrays["active"])
        chosen = products[:, active][:, :, active]
        found = page.execute_script("return explorer.measures(explorer.members[arguments[0]])", number)
        assert found["points"] == 8
        assert found["over"][0] == pytest.approx(dto(gram=chosen).score.item(), abs=1e-3)
        assert found["over"][1] == pytest.approx(column_coherence(gram=chosen).score.item(), abs=1e-3)
        assert found["here"][0] == pytest.approx(dto(gram=chosen[:1]).score.item(), abs=1e-3)
        chance = haar_chance(int(active.sum()))
        facts = page.find_elements(By.CLASS_NAME, "facts-of")[number].text
        assert f"random rotation: DtO {chance.score:.2f}" in facts
        assert ("At chance" in facts) == (found["over"][0] >= chance.score - chance.deviation)
    assert turned >= 2
    here = page.execute_script("return explorer.measures(explorer.members[0]).here[0]")
    page.find_element(By.ID, "reset").click()
    wait_until(lambda: page.execute_script(RUNNING) is False)
    assert page.execute_script("return explorer.measures(explorer.members[0]).here[0]") != pytest.approx(here, abs=1e-2)


def test_a_rotation_leaves_the_image_and_turns_the_sliders(page):
    page.execute_script(
        "const s = explorer.state; s.hand = [0, 1, 2, 3].find((each) => ![s.across, s.up].includes(each))"
    )
    before, code = page.execute_script(IMAGE, 0), page.execute_script(CODE, 0)
    page.find_element(By.ID, "angle").send_keys(Keys.ARROW_RIGHT * 30)
    drawn(page)
    np.testing.assert_allclose(page.execute_script(IMAGE, 0), before, atol=1e-12)
    names = [name.text for name in page.find_elements(By.CLASS_NAME, "latent-name")]
    assert sum(name.endswith("′") for name in names) == 2
    across, up = page.execute_script("return [explorer.state.across, explorer.state.up]")
    assert page.find_element(By.ID, "rotates").text == f"rotate z{across} and z{up}"
    assert page.find_element(By.ID, "hand").text == f"z{across}′"  # what the knob turns is what is shown
    leading_slider(page).send_keys(Keys.ARROW_RIGHT)
    drawn(page)
    moved = np.flatnonzero(np.array(page.execute_script(CODE, 0)) != np.array(code))
    assert set(moved) == set(page.execute_script("return [explorer.state.across, explorer.state.up]"))


def test_another_member_can_lead(page, exploration):
    page.find_element(By.CSS_SELECTOR, ".member:nth-child(3) .lead-button").click()
    drawn(page)
    assert page.execute_script("return explorer.state.lead.letter") == "B"
    focused = page.execute_script("return document.activeElement.getAttribute('aria-label')")
    assert focused.startswith("What member B decodes.")  # and not nothing, since the button has gone
    kls = [text.text for text in page.find_elements(By.CSS_SELECTOR, "#sliders .kl")]
    lead = exploration.running[1].arrays
    assert kls == [f"KL {value:.2f} nats" for value in sorted(lead["kl"][lead["active"]], reverse=True)]


def test_help_is_folded_away_and_says_what_the_words_of_the_page_mean(page):
    keys, words = page.find_elements(By.CSS_SELECTOR, ".help details")
    assert not keys.get_attribute("open")
    assert not words.get_attribute("open")
    words.find_element(By.TAG_NAME, "summary").send_keys(Keys.ENTER)
    terms = [term.text for term in words.find_elements(By.TAG_NAME, "dt")]
    assert {"KL", "passive", "counterpart", "no counterpart", "DtO", "mutual information", "mlp 64 / 64"} <= set(terms)
    assert all(term.is_displayed() for term in words.find_elements(By.TAG_NAME, "dd"))


def test_a_narrow_page_keeps_scores_the_number_of_models_and_reset_beside_the_mean(page):
    size = page.get_window_size()
    page.set_window_size(500, 900)  # as narrow as windows get; the page changes at 860
    drawn(page)
    parts = [page.find_element(By.CSS_SELECTOR, name) for name in (".member .role", ".stage h2")]
    hidden = [part.value_of_css_property("display") == "none" for part in parts]
    tops = [page.find_element(By.CSS_SELECTOR, name).rect["y"] for name in ("[data-start='-1']", "#reset")]
    page.set_window_size(size["width"], size["height"])
    assert hidden == [False, False]
    assert page.find_element(By.CSS_SELECTOR, ".stage h2").text == "What the 3 models decode"
    assert abs(tops[0] - tops[1]) < 5


def test_on_a_narrow_page_pictures_stay_in_sight_and_cover_no_slider(page):
    size = page.get_window_size()
    page.set_window_size(500, 700)
    wait_until(lambda: page.execute_script("return innerWidth <= 860 && !explorer.measuring"))
    page.execute_script("document.querySelector('#sliders .latent:last-child').scrollIntoView({ behavior: 'instant' })")
    drawn(page)
    image = page.find_element(By.CSS_SELECTOR, ".member .image")
    box = "const box = arguments[0].getBoundingClientRect(); return [box.top, box.bottom]"
    top, bottom = page.execute_script(box, image)
    stage = page.execute_script(box, page.find_element(By.CLASS_NAME, "stage"))
    slider = page.execute_script(box, page.find_element(By.CSS_SELECTOR, "#sliders .latent:last-child"))
    page.set_window_size(size["width"], size["height"])
    assert 0 <= top < bottom <= stage[1] <= slider[0] < slider[1]
    assert slider[0] < 400  # scrolled to
    assert stage[1] < 240  # a third of a small screen: what is above the pictures has gone


def test_on_a_narrow_page_a_finger_drags_the_picture_that_leads_and_scrolls_the_others(page):
    size = page.get_window_size()
    page.set_window_size(500, 900)
    wait_until(lambda: page.execute_script("return innerWidth <= 860 && !explorer.measuring"))
    codes = []
    for member in (2, 3, 2):  # the first is the original
        image = page.find_element(By.CSS_SELECTOR, f".member:nth-child({member}) .image")
        page.execute_script("arguments[0].scrollIntoView({ block: 'center', behavior: 'instant' })", image)
        finger = ActionBuilder(page, mouse=PointerInput("touch", "finger"))
        finger.pointer_action.move_to(image).pointer_down().move_to(image, x=-20, y=0).move_to(image, x=-45, y=0)
        finger.pointer_action.pointer_up()
        finger.perform()
        drawn(page)
        codes.append(page.execute_script(CODE, 0))
    page.set_window_size(size["width"], size["height"])
    start = page.execute_script("return Array.from(explorer.members[0].origin)")
    assert codes[0] != start
    assert codes[1] == codes[0]
    assert codes[2] != codes[1]


HOSTILE = "</script><img src=x onerror=document.title=1><script>document.title=2</script>"


def test_names_are_text_and_there_may_be_more_members_than_letters(browser, exploration, tmp_path):
    named = [
        member._replace(
            settings={"seed": HOSTILE, "<b>": True},
            counterparts=member.counterparts * 9,
            correlations=member.correlations * 9,
        )
        for member in exploration.running
    ]
    strip = np.zeros((2, 3, 1, 4, 4), np.uint8)
    still = named[0]._replace(
        layers=(), reason=HOSTILE, address=HOSTILE, arrays={"strip": strip, "strip_latents": np.arange(2)}
    )
    hostile = replace(exploration, title=HOSTILE, summary=HOSTILE, members=(*named * 9, still))
    browser.get_log("browser")
    browser.get(aw.report.explorer(hostile, tmp_path / "explorer.html").as_uri())
    wait_until(lambda: browser.execute_script(RUNNING) is False)
    letters = [letter.text for letter in browser.find_elements(By.CSS_SELECTOR, ".member h3 .letter")]
    assert (letters[:2], letters[25:]) == (["A", "B"], ["Z", "AA"])
    assert browser.title == HOSTILE
    assert HOSTILE in browser.find_element(By.CSS_SELECTOR, ".member h3").text
    rest = browser.find_element(By.CLASS_NAME, "rest")
    assert not rest.get_attribute("open")
    assert HOSTILE in rest.find_element(By.TAG_NAME, "figcaption").get_attribute("textContent")
    assert browser.execute_script("return document.querySelectorAll('img').length") == 1  # the strip
    assert browser.get_log("browser") == []


@pytest.mark.parametrize(
    ("active", "words"), [(0, "No latent is active: there is nothing to measure."), (1, "One latent is active")]
)
def test_right_angles_need_two_active_latents(browser, exploration, tmp_path, active, words):
    first = exploration.running[0]
    alone = first._replace(
        arrays={**first.arrays, "active": np.arange(4) < active},
        counterparts=first.counterparts[:1],
        correlations=first.correlations[:1],
    )
    browser.get_log("browser")
    browser.get(aw.report.explorer(replace(exploration, members=(alone,)), tmp_path / "explorer.html").as_uri())
    wait_until(lambda: browser.execute_script(RUNNING) is False)
    assert words in browser.find_element(By.CLASS_NAME, "facts-of").text
    assert browser.find_elements(By.CLASS_NAME, "measures") == []
    assert browser.find_element(By.ID, "no-active").is_displayed() == (active == 0)
    assert browser.get_log("browser") == []


def test_one_conv64_member_is_updated_at_every_move(browser, tmp_path, capsys):
    dataset = aw.data.arrays(torch.rand(40, 1, 64, 64, generator=torch.Generator().manual_seed(0)))
    population = aw.train(aw.grid(model=aw.models.conv64(), objective=aw.objectives.BetaVAE(), steps=1), dataset)
    path = aw.report.explorer(aw.explore(population, dataset, points=20), tmp_path / "explorer.html")
    assert path.stat().st_size < 2e6
    browser.get(path.as_uri())
    wait_until(lambda: browser.execute_script(RUNNING) is False)
    times = []
    for step in range(40):
        browser.execute_script("explorer.move([[0, arguments[0]]])", step / 40)
        drawn(browser)
        times.append(browser.execute_script("return explorer.milliseconds"))
    assert min(times) > 0
    with capsys.disabled():  # image, Jacobian column, sliders and codes; a time is no test on a shared machine
        print(f"\none conv64 member is updated in {np.median(times[10:]):.1f} ms (median of {len(times) - 10})")


def test_the_page_runs_no_script_but_its_own(browser, exploration, tmp_path):
    """Were a name ever to become markup, the browser would still refuse what it says."""
    browser.get(aw.report.explorer(exploration, tmp_path / "explorer.html").as_uri())
    wait_until(lambda: browser.execute_script(RUNNING) is False)
    browser.execute_script(
        "document.body.insertAdjacentHTML('beforeend', '<button id=evil onclick=document.title=1>x</button>');"
        "document.getElementById('evil').click();"
        "const script = document.createElement('script'); script.textContent = 'document.title = 2';"
        "document.body.append(script);"
    )
    assert browser.title == "<i>Sprites</i> & 'more'"
    refused = [entry["message"] for entry in browser.get_log("browser")]
    assert len(refused) == 2
    assert all("Content Security Policy" in message for message in refused)


def test_one_latent_has_no_plane_and_no_rotation(browser, tmp_path):
    """Beside a member of three latents: what needs two is there only while that one leads."""
    models = [aw.models.mlp((1, 16, 16), latents, encoder=(8,), decoder=(8,)) for latents in (3, 1)]
    members = aw.grid(model=models, objective=aw.objectives.BetaVAE(), steps=5, batch=16)
    found = aw.explore(aw.train(members, sprites()), sprites(), points=50, members=(0, 1))
    browser.get_log("browser")
    browser.get(aw.report.explorer(found, tmp_path / "explorer.html").as_uri())
    wait_until(lambda: browser.execute_script(RUNNING) is False)
    heading = browser.find_element(By.CSS_SELECTOR, ".reasons h2")
    turning = browser.find_element(By.CLASS_NAME, "turning")
    assert turning.is_displayed()
    assert heading.text == "Why: the decoder’s Jacobian, and a rotation that spoils it"
    browser.find_element(By.CSS_SELECTOR, ".member:nth-child(3) .lead-button").click()
    wait_until(lambda: browser.execute_script(RUNNING) is False)
    assert not turning.is_displayed()
    assert heading.text == "Why: the decoder’s Jacobian"
    assert "Drag" not in browser.find_element(By.CLASS_NAME, "how").text
    before = browser.execute_script(CODE, 1)
    browser.find_element(By.CSS_SELECTOR, ".member:nth-child(3) .image").send_keys(Keys.ARROW_RIGHT)
    drawn(browser)
    assert browser.execute_script(CODE, 1) > before
    assert browser.get_log("browser") == []


def test_images_keep_their_proportions(browser, tmp_path):
    dataset = aw.data.arrays(torch.rand(20, 1, 4, 12, generator=torch.Generator().manual_seed(0)))
    model = aw.models.mlp((1, 4, 12), 2, encoder=(8,), decoder=(8,))
    population = aw.train(aw.grid(model=model, objective=aw.objectives.BetaVAE(), steps=1, batch=8), dataset)
    browser.get(aw.report.explorer(aw.explore(population, dataset), tmp_path / "explorer.html").as_uri())
    wait_until(lambda: browser.execute_script(RUNNING) is False)
    drawings = browser.find_elements(By.CSS_SELECTOR, ".start canvas, #original-image, .image, .small")
    for canvas in drawings:
        assert (canvas.get_property("width"), canvas.get_property("height")) == (12, 4)
        assert canvas.value_of_css_property("object-fit") == "contain"  # the elements themselves are square
    assert len(drawings) == 12 + 1 + 1 + 3


class Scaled(nn.Module):
    """Codes that are far smaller than the data, and a decoder that soon has no number for what it gives."""

    def __init__(self):
        super().__init__()
        self.rows = nn.Linear(2, 2, bias=False)
        self.rows.weight.data = 1e4 * torch.eye(2)

    def encode(self, x):
        return DeterministicParameters(x / 1e4)

    def decode(self, z):
        return torch.exp(self.rows(z))


def test_codes_of_any_size_can_be_read_and_typed(browser, tmp_path):
    dataset, model = aw.data.arrays(torch.rand(30, 2, generator=torch.Generator().manual_seed(0))), Scaled()
    found = aw.explore(aw.from_models([(model.encode, model.decode)], posterior=Deterministic()), dataset)
    browser.get_log("browser")
    browser.get(aw.report.explorer(found, tmp_path / "explorer.html").as_uri())
    wait_until(lambda: browser.execute_script(RUNNING) is False)
    number = browser.find_element(By.CSS_SELECTOR, "#sliders .latent input[type=number]")
    latent = int(browser.find_element(By.CSS_SELECTOR, "#sliders .latent").get_attribute("data-latent"))
    (member,) = found.running
    far = float((member.arrays["high"] - member.arrays["low"])[latent])
    assert float(number.get_property("value")) == pytest.approx(float(member.arrays["codes"][0, latent]), abs=far / 400)
    number.send_keys(Keys.CONTROL + "a")
    number.send_keys("1", Keys.ENTER)  # exp(10⁴) is no number, and neither is its geometry
    wait_until(lambda: browser.execute_script(RUNNING) is False)
    assert browser.execute_script(CODE, 0)[latent] == 1.0
    here = [
        row.find_elements(By.TAG_NAME, "td")[0].text
        for row in browser.find_elements(By.CSS_SELECTOR, ".measures tr")[1::2]
    ]
    assert here == ["–", "–"]
    browser.find_element(By.ID, "reset").click()
    wait_until(lambda: browser.execute_script(RUNNING) is False)
    assert "–" not in browser.find_element(By.CLASS_NAME, "measures").text
    assert browser.get_log("browser") == []


class Large(nn.Module):
    """Numbers beyond those of 16 bits."""

    def __init__(self):
        super().__init__()
        self.rows = nn.Linear(2, 2, bias=False)
        self.rows.weight.data = 1e6 * torch.eye(2)

    def encode(self, x):
        return x / 1e6, torch.full_like(x, -3.0)

    def decode(self, z):
        return self.rows(z)


def test_images_of_any_size_are_compared_with_pytorchs(browser, tmp_path):
    dataset, model = aw.data.arrays(1e6 * torch.rand(30, 2, generator=torch.Generator().manual_seed(0))), Large()
    found = aw.explore(aw.from_models([(model.encode, model.decode)]), dataset)
    browser.get(aw.report.explorer(found, tmp_path / "explorer.html").as_uri())
    wait_until(lambda: browser.execute_script(RUNNING) is False)
    assert browser.execute_script("return explorer.members[0].difference") < 500.0  # of a million, in 16 bits
    assert browser.find_elements(By.CLASS_NAME, "warning") == []


def test_vectors_are_drawn_in_a_plane(browser, tmp_path):
    square = aw.data.synth_linear(samples=300)
    members = aw.grid(model=aw.models.linear(3, 2), objective=aw.objectives.BetaVAE(0.01), steps=200, seed=range(2))
    path = aw.report.explorer(aw.explore(aw.train(members, square), square), tmp_path / "explorer.html")
    browser.get_log("browser")
    browser.get(path.as_uri())
    wait_until(lambda: browser.execute_script(RUNNING) is False)
    pixels = "return document.querySelector('.member .image').toDataURL()"
    before = browser.execute_script(pixels)
    leading_slider(browser).send_keys(Keys.ARROW_RIGHT * 3)
    drawn(browser)
    assert browser.execute_script(pixels) != before
    assert browser.get_log("browser") == []


@pytest.mark.parametrize("latents", [1, 2])
def test_every_member_has_the_image_of_its_latents_in_the_plane(browser, tmp_path, latents):
    """Lines of the accent, also where no latent has a counterpart."""
    square = aw.data.synth_linear(samples=300)
    members = aw.grid(
        model=aw.models.linear(3, latents), objective=aw.objectives.BetaVAE(0.01), steps=200, seed=range(2)
    )
    found = aw.explore(aw.train(members, square), square, members=(0, 1))
    alone = tuple(
        member._replace(counterparts=(np.full(latents, -1),) * 2, correlations=(np.zeros(latents),) * 2)
        for member in found.running
    )
    browser.get(aw.report.explorer(replace(found, members=alone), tmp_path / "explorer.html").as_uri())
    wait_until(lambda: browser.execute_script(RUNNING) is False)
    blue = (
        "return explorer.members.map(({ parts: { image } }) => { let count = 0;"
        "const { data } = image.getContext('2d').getImageData(0, 0, image.width, image.height);"
        "for (let i = 0; i < data.length; i += 4) if (data[i + 2] > data[i] + 60 && data[i + 3] > 100) count++;"
        "return count; })"
    )
    assert all(count > 100 for count in browser.execute_script(blue))
