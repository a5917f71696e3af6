/**
 * A NEKTE client that uses only Python's standard library. The client delegates, and prints each server-sent
 * event as one line of JSON. Arguments: host, port, path and body, then headers as name=value.
 */
export const PYTHON_CLIENT = `
import http.client, json, sys

host, port, path, body = sys.argv[1:5]
headers = dict(pair.split("=", 1) for pair in sys.argv[5:])
connection = http.client.HTTPConnection(host, int(port), timeout=30)
# Neither Accept nor Accept-Encoding is sent unless an argument says so.
connection.putrequest("POST", path, skip_accept_encoding=True)
encoded = body.encode()
for name, value in {"Content-Type": "application/json", "Content-Length": str(len(encoded)), **headers}.items():
    connection.putheader(name, value)
connection.endheaders(encoded)
response = connection.getresponse()
print(json.dumps({"status": response.status, "type": response.getheader("content-type")}), flush=True)
event, data, last = None, [], None
for raw in response:
    line = raw.decode().rstrip("\\r\\n")
    if line == "":
        if data:
            print(json.dumps({"event": event, "id": last, "data": json.loads("\\n".join(data))}), flush=True)
        event, data = None, []
    elif line.startswith(":"):
        continue
    else:
        field, _, value = line.partition(":")
        value = value[1:] if value.startswith(" ") else value
        if field == "event":
            event = value
        elif field == "data":
            data.append(value)
        elif field == "id":
            last = value
`;
