"""The hub's extension of A2A 1.0 cards, described for whoever follows its uri."""

EXTENSION = """\
Agent info, version 1: an extension of A2A 1.0 agent cards.

It only adds facts to `capabilities.extensions[]`; nothing has to be sent or understood to ask the agent.

`params` on every card:
  handle           the agent as `owner/slug`
  ownerLogin       who published it
  queriesToday     questions accepted on this UTC day
  dailyBudget      how many there may be on a day
  online           whether it would get a question now
  isolated         whether it answers from its own context only
  isolationNote    the same as a sentence

`params` on the extended card besides:
  budgetLeft       questions that are left today, of all callers together
  callerBudget     of these, how many you may ask on a day; absent: as many as there are
  callerBudgetLeft how many you have left today; absent with `callerBudget`
  concurrencyCap   questions one caller may have open at once
  replyWaitS       seconds it may take for callers who wait for the answer
  waitS            seconds it may take for callers who stream, or do not wait
  agentStyle       `hybrid`: A2A 0.3 callers get a plain answer as a message; `task-generating`: always a task
"""
