"""Python's clients of OpenAI's API get an answer, and ask an agent that fails; their own retries are on.

`python openai_clients.py URL TOKEN MODEL` prints one JSON object on its last line.
"""

import json
import sys

import litellm
from langchain_openai import ChatOpenAI
from openai import OpenAI, OpenAIError

url, token, model = sys.argv[1:]
official = OpenAI(base_url=url, api_key=token)
langchain = ChatOpenAI(base_url=url, api_key=token, model=model)


def messages(text):
    return [{"role": "user", "content": text}]


def by_openai(text):
    return official.chat.completions.create(model=model, messages=messages(text)).choices[0].message.content


def by_langchain(text):
    return langchain.invoke(text).content


def by_litellm(text):
    options = {"model": f"openai/{model}", "api_base": url, "api_key": token}
    return litellm.completion(**options, messages=messages(text)).choices[0].message.content


def failure_of(ask):
    try:
        return ask("fail no disk")
    except OpenAIError as failure:
        return {"status": getattr(failure, "status_code", None), "text": str(failure)}


seen = {"pieces": [piece.content for piece in langchain.stream("say one | say two")]}
for name, ask in (("openai", by_openai), ("langchain", by_langchain), ("litellm", by_litellm)):
    seen[name] = {"answer": ask("say well"), "failure": failure_of(ask)}
sys.stdout.write("\n" + json.dumps(seen))
