"""The page in a headless Chromium, as people use it: `make test-page`. Skipped where there is no Chromium.

Each step is taken with the keyboard or by what a screen reader finds: labels, roles and names. SCREENSHOTS=folder keeps
a picture of every view at three widths, light and dark.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("selenium")
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

FORM = "A symmetric (n, n), x (n)\nx'*A*x"
WIDTHS = (360, 900, 1400)
TABS = ("index", "matrix", "source", "explanation", "plan", "check")


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    command = [sys.executable, "-m", "combdiff", "serve", "--port", str(port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        assert str(port) in server.stdout.readline().decode()
        for _ in range(100):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5).close()
                break
            except OSError:
                time.sleep(0.1)
        yield f"http://127.0.0.1:{port}/"
        server.terminate()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    binary, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if binary is None or driver is None:
        pytest.skip("needs chromium and chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    chrome = webdriver.Chrome(options, webdriver.ChromeService(driver))
    yield chrome
    chrome.quit()


@pytest.fixture
def page(browser: Any, address: str) -> Iterator[Any]:
    """The empty page at a desktop's width; at the end it must have no errors in its console."""
    width(browser, 1400)
    browser.get("about:blank")
    browser.get(address)
    WebDriverWait(browser, 10).until(lambda b: b.find_elements(By.CSS_SELECTOR, "#examples button"))
    yield browser
    assert not [entry for entry in browser.get_log("browser") if entry["level"] in {"SEVERE", "WARNING"}]


def width(browser: Any, pixels: int, height: int = 900) -> None:
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": pixels, "height": height, "deviceScaleFactor": 1, "mobile": pixels < 500},
    )


def done(page: Any, text: str = "Done in", within: float = 40) -> None:
    """Wait until the status says so."""
    WebDriverWait(page, within).until(
        lambda b: text in (s := b.find_element(By.ID, "status")).text and "busy" not in (s.get_attribute("class") or "")
    )


def write(page: Any, field: str, text: str) -> Any:
    found = page.find_element(By.ID, field)
    found.clear()
    found.send_keys(text)
    return found


def differentiate(page: Any, text: str, wrt: str) -> None:
    write(page, "text", text)
    write(page, "wrt0", wrt).send_keys(Keys.CONTROL, Keys.ENTER)


def shown(page: Any, tab: str) -> str:
    return str(page.find_element(By.ID, f"panel-{tab}").text)


def opened(page: Any, tab: str) -> str:
    page.find_element(By.ID, f"tab-{tab}").click()
    WebDriverWait(page, 40).until(lambda b: shown(b, tab))
    return shown(page, tab)


def test_a_derivative_by_the_keyboard_alone(page: Any) -> None:
    differentiate(page, FORM, "x")
    done(page)
    panel = page.find_element(By.ID, "panel-index")
    assert panel.find_elements(By.CSS_SELECTOR, ".katex-html")
    assert "Derivative by x" in panel.text
    page.find_element(By.ID, "tab-index").send_keys(Keys.ARROW_RIGHT)
    WebDriverWait(page, 10).until(lambda b: "Derivative by x" in shown(b, "matrix"))
    assert page.switch_to.active_element.get_attribute("id") == "tab-matrix"
    assert page.find_element(By.ID, "tab-matrix").get_attribute("aria-selected") == "true"
    annotation = page.find_element(By.CSS_SELECTOR, "#panel-matrix annotation")
    assert annotation.get_attribute("textContent") == "2 A x"


def test_every_view(page: Any) -> None:
    differentiate(page, FORM, "x")
    done(page)
    assert "import numpy" in opened(page, "source")
    page.find_element(By.XPATH, "//button[text()='PyTorch']").click()
    assert "import torch" in shown(page, "source")
    assert "δ meets Σ" in opened(page, "explanation")
    assert "matrix-vector" in opened(page, "plan")
    assert "agrees with central differences" in opened(page, "check")


def test_a_link_holds_the_whole_input(page: Any) -> None:
    differentiate(page, FORM, "x")
    done(page)
    write(page, "wrt1", "x")
    write(page, "sizes", "n=10").send_keys(Keys.ENTER)
    done(page)
    opened(page, "plan")
    link, text = page.current_url, shown(page, "plan")
    page.get("about:blank")
    page.get(link)
    WebDriverWait(page, 20).until(lambda b: shown(b, "plan"))
    assert shown(page, "plan") == text
    assert page.find_element(By.ID, "text").get_attribute("value") == FORM
    assert [page.find_element(By.ID, field).get_attribute("value") for field in ("wrt0", "wrt1", "sizes")] == [
        "x",
        "x",
        "n=10",
    ]


def test_a_mistake_is_shown_at_its_place(page: Any) -> None:
    differentiate(page, "x'*A*)x", "x")
    done(page, "There is no result")
    alert = page.find_element(By.CSS_SELECTOR, "[role=alert]")
    assert "Line 1, column 6" in alert.text
    text = page.find_element(By.ID, "text")
    assert text.get_attribute("aria-invalid") == "true"
    assert page.switch_to.active_element == text
    assert page.execute_script("return arguments[0].selectionStart", text) == 5
    assert page.find_element(By.CSS_SELECTOR, "#marks mark").get_attribute("textContent") == ")"
    differentiate(page, "x'*A*x", "x, z")
    WebDriverWait(page, 10).until(lambda b: "'z' is not a tensor" in b.find_element(By.ID, "mistake").text)
    assert page.switch_to.active_element.get_attribute("id") == "wrt0"


def test_the_table_declares_the_tensors(page: Any) -> None:
    differentiate(page, "x'*A*x", "x")
    done(page)
    page.find_element(By.CSS_SELECTOR, "[aria-label='Symmetry of A'] option[value=symmetric]").click()
    WebDriverWait(page, 10).until(
        lambda b: b.find_element(By.ID, "text").get_attribute("value") == "x (n), A symmetric (n, n)\nx'*A*x"
    )
    opened(page, "matrix")
    WebDriverWait(page, 10).until(
        lambda b: "2 A x" in [a.get_attribute("textContent") for a in b.find_elements(By.CSS_SELECTOR, "annotation")]
    )
    page.find_element(By.CSS_SELECTOR, "input[value=calculus]").send_keys(Keys.SPACE)
    page.find_element(By.CSS_SELECTOR, "#examples button").click()
    done(page)
    page.find_element(By.CSS_SELECTOR, "[aria-label='x is complex']").click()
    WebDriverWait(page, 10).until(
        lambda b: "declare A 2 x 1 complex" in b.find_element(By.ID, "text").get_attribute("value")
    )


def test_every_control_has_a_name(page: Any) -> None:
    differentiate(page, FORM, "x")
    done(page)
    opened(page, "plan")
    for control in page.find_elements(By.CSS_SELECTOR, "button, input, select, textarea, [tabindex='0'][role]"):
        assert control.accessible_name or not control.is_displayed(), control.get_attribute("outerHTML")[:200]
    assert page.find_element(By.ID, "status").get_attribute("aria-live") == "polite"


def test_a_long_mistake_is_no_wider_than_a_telephone_and_shows_its_place(page: Any) -> None:
    width(page, 390)
    differentiate(page, "x" * 300, "y")
    WebDriverWait(page, 10).until(lambda b: "its tensors are" in b.find_element(By.ID, "mistake").text)
    assert page.execute_script("return document.documentElement.scrollWidth") <= 390
    differentiate(page, "x' * A * x + " * 8 + "x ) x", "x")
    WebDriverWait(page, 10).until(lambda b: "column 107" in b.find_element(By.ID, "mistake").text)
    assert page.execute_script("return document.documentElement.scrollWidth") <= 390
    excerpt = page.find_element(By.CSS_SELECTOR, "#mistake pre")
    assert page.execute_script("return arguments[0].scrollLeft", excerpt) > 0


@pytest.mark.parametrize("pixels", WIDTHS)
def test_nothing_is_wider_than_the_window(page: Any, pixels: int) -> None:
    width(page, pixels)
    differentiate(page, "X (m, n), w (n), y (m)\nsum(log(1 + exp(-y .* (X*w))))", "w")
    done(page)
    folder = os.environ.get("SCREENSHOTS")
    for tab in TABS:
        opened(page, tab)
        done(page)
        assert page.execute_script("return document.documentElement.scrollWidth") <= pixels, tab
        for scheme in ("light", "dark") if folder else ():
            features = [{"name": "prefers-color-scheme", "value": scheme}]
            page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
            height = page.execute_script("return document.documentElement.scrollHeight")
            width(page, pixels, height)
            Path(folder or "").mkdir(exist_ok=True)
            page.save_screenshot(str(Path(folder or "") / f"{tab}-{pixels}-{scheme}.png"))
            width(page, pixels)
