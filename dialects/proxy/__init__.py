"""A reverse proxy that heals the chat completions of the server behind it. Needs the extra `proxy`.

dialects proxy --upstream http://127.0.0.1:8000

settings.py   what can be set
app.py        the application: its own two paths, and everything else, which goes to the upstream
exchange.py   one request and its answer: what is healed, what passes, what goes wrong
client.py     the client's side of it: the body, the answer, the moment it leaves
headers.py    which headers pass
metrics.py    what is counted, for Prometheus
logs.py       logs as JSON, without contents and keys
server.py     runs it
"""
