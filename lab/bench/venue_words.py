"""What the venues of the network are called, and what `lab.bench.agnt` searches for."""

CATEGORIES = ("restaurant", "cafe", "bar", "spa", "gym", "hotel", "tour")
PLACES = (
    ("Canggu", "Badung"),
    ("Seminyak", "Badung"),
    ("Ubud", "Gianyar"),
    ("Sanur", "Denpasar"),
    ("Amed", "Karangasem"),
)
NAMES = ("Blue Table", "Green Kitchen", "Old Harbour", "Little Garden", "River View", "Lantern")
WORDS = (
    "seafood", "sunset", "breakfast", "coffee", "noodles", "grill",
    "vegan", "families", "music", "dancing", "massage", "yoga",
    "surfing", "diving", "tapas", "cocktails", "wine", "pizza",
    "sushi", "curry", "salads", "bread", "cakes", "gardens",
    "terraces", "views", "quiet", "meetings", "parties", "weddings",
)  # fmt: skip
WORDS_A_VENUE = 8


def name_venue(number: int) -> str:
    """The name of a venue; its number is in no other name."""
    return f"{NAMES[number % len(NAMES)]} {number:06d}"


def slug_of(number: int) -> str:
    """The slug of a venue."""
    return f"venue-{number:06d}"
