// SPDX-License-Identifier: Apache-2.0
// Asks a Setu cluster a question and prints the answer as it streams.
//
// usage: generate.js HOST:PORT "question"
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";

import { InferenceService } from "./setu/v1/inference_pb.js";

const [address, question] = process.argv.slice(2);
if (!address || !question) {
  console.error('usage: generate.js HOST:PORT "question"');
  process.exit(2);
}

const client = createClient(
  InferenceService,
  createGrpcTransport({ baseUrl: `http://${address}` }),
);
try {
  const stream = client.generate(
    {
      input: { case: "chat", value: { messages: [{ role: "user", content: question }] } },
      sampling: { maxTokens: 64, temperature: 0 },
    },
    { timeoutMs: 60_000 },
  );
  for await (const { event } of stream) {
    if (event.case === "delta") process.stdout.write(event.value.text);
    if (event.case === "finished") {
      console.error(`\n[${event.value.usage.completionTokens} tokens]`);
    }
  }
} catch (error) {
  const { code, rawMessage } = ConnectError.from(error);
  console.error(`${Code[code]}: ${rawMessage}`);
  process.exit(1);
}
