"""What tests of sign-in count as one thing that was tried, where several modules try it."""

SINGLE = "attacks on sign-in that one attempt shows, such as a replayed callback"
CODES = "malformed exchanges of codes"
REDIRECTED = "redirect addresses that are not the client's"
RETURNED = "addresses to return to that lead off the hub (open redirects)"
RACED = "users who race for one invitation"
