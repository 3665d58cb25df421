"""Near misses of common mail domains: what the visitor probably meant, to be asked about and never assumed."""

from __future__ import annotations

COUNTRIES = (
    "com co.uk fr de it es nl be ch at ca se no dk fi ie pt pl gr in co.in co.jp jp com.br com.au com.mx com.ar "
    "com.tr co.nz co.za co.id co.il co.th com.sg com.hk com.tw com.vn com.ph cz hu ro cl kr my ph sg sk"
)
"""Endings under which the world-wide providers gave out addresses."""

PROVIDERS: dict[str, frozenset[str]] = {
    name: frozenset(endings.split())
    for name, endings in {
        "gmail": "com",
        "googlemail": "com",
        "yahoo": COUNTRIES,
        "hotmail": COUNTRIES,
        "outlook": COUNTRIES,
        "icloud": "com",
        "protonmail": "com ch",
        "rocketmail": "com",
        "btinternet": "com",
        "comcast": "net",
        "sbcglobal": "net",
        "bellsouth": "net",
        "verizon": "net",
        "wanadoo": "fr",
        "yandex": "com ru",
    }.items()
}
"""Providers whose name is long and odd enough that a name one slip away is hardly anybody's own.

Short ones (aol, gmx, live, msn, me) are left out: one letter further stands another real company.
"""

ONLY_COM = frozenset({"gmail", "icloud"})
"""Providers whose addresses end in `.com` whatever the country."""

SHORTER_COM = frozenset({"co", "cm", "om"})
"""Real endings, but behind a provider's name a `.com` that lost a letter."""

ALSO_SHORTENED = frozenset({"aol", "msn", "ymail"})
"""Providers that are asked about after a lost letter in `.com`, and never because of their name."""

REAL = frozenset({"prontomail.com"})
"""Domains that look like a slip and are not."""

NO_SUCH_ENDING = {
    **dict.fromkeys(("con", "cmo", "ocm", "comm", "coom", "ccom", "cim", "cpm", "vom", "xom", "c0m", "comn"), "com"),
    **dict.fromkeys(("nte", "ent", "nett", "nwt"), "net"),
    **dict.fromkeys(("ogr", "rog", "orgg", "prg"), "org"),
    "c": "com",
    "couk": "co.uk",
}
"""Top-level domains that do not exist, and the one that was meant."""


def nearest_domain(domain: str) -> str | None:
    """The domain that was probably meant, or None where there is nothing to ask.

    Args:
        domain: in its ASCII form.
    """
    domain = domain.lower()
    base, _, last = domain.rpartition(".")
    mended = f"{base}.{NO_SUCH_ENDING.get(last, last)}"
    meant = domain if mended in REAL else _provider_meant(mended) or mended
    return meant if meant != domain else None


def _provider_meant(domain: str) -> str | None:
    name, _, ending = domain.partition(".")
    if name in PROVIDERS or name in ALSO_SHORTENED:
        shortened = ending in SHORTER_COM and "com" in PROVIDERS.get(name, ("com",))
        elsewhere = name in ONLY_COM and ending != "com" and ("." not in ending or ending in COUNTRIES.split())
        return f"{name}.com" if shortened or elsewhere else None
    for provider, endings in PROVIDERS.items():
        if _is_slip(name, provider):
            if ending in endings:
                return f"{provider}.{ending}"
            if ending in SHORTER_COM and "com" in endings:
                return f"{provider}.com"
    return None


def _is_slip(name: str, provider: str) -> bool:
    """One letter too many, missing or wrong, or letters in the wrong order.

    The first letter must be right: it is seldom missed, and real services differ by it (mail.com, ymail.com,
    email.com, cloud.com).
    """
    if name[:1] != provider[:1]:
        return False
    if sorted(name) == sorted(provider):
        return True
    at = next((at for at in range(len(provider)) if name[at : at + 1] != provider[at]), len(provider))
    rest, right = name[at:], provider[at:]
    return rest[1:] == right[1:] or rest[1:] == right or rest == right[1:]
