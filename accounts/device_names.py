"""What to call the program behind a User-Agent, for people who decide what to revoke."""

PROGRAMS = ("clawborrator-cli", "clawborrator-supervisor", "clawborrator-mcp")
BROWSERS = {"Edg/": "Edge", "OPR/": "Opera", "Firefox/": "Firefox", "Chrome/": "Chrome", "Safari/": "Safari"}
SYSTEMS = {
    "iPhone": "iPhone",
    "iPad": "iPad",
    "Android": "Android",
    "Windows": "Windows",
    "Mac OS": "macOS",
    "Linux": "Linux",
}


def device_name(user_agent: str) -> str:
    """A known program by its name, a browser as "Firefox on Linux", else the header's first words."""
    for program in PROGRAMS:
        if program in user_agent:
            return program
    browser = next((name for mark, name in BROWSERS.items() if mark in user_agent), "")
    system = next((name for mark, name in SYSTEMS.items() if mark in user_agent), "")
    if browser:
        return f"{browser} on {system}" if system else browser
    return user_agent[:40] or "unknown"
