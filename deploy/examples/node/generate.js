// SPDX-License-Identifier: Apache-2.0
// Asks a Setu cluster a question and prints the answer as it streams.
//
// usage: generate.js HOST:PORT "question"
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";

import { FinishReason, InferenceService } from "./setu/v1/inference_pb.js";

const [address, question] = process.argv.slice(2);
if (!address || !question) {
  console.error('usage: generate.js HOST:PORT "question"');
  process.exit(2);
}

const maxTokens = 64;
const client = createClient(
  InferenceService,
  createGrpcTransport({ baseUrl: `http://${address}` }),
);
try {
  const stream = client.generate(
    {
      input: { case: "chat", value: { messages: [{ role: "user", content: question }] } },
      sampling: { maxTokens, temperature: 0 },
    },
    { timeoutMs: 60_000 },
  );
  for await (const { event } of stream) {
    if (event.case === "delta") process.stdout.write(event.value.text);
    if (event.case === "finished") {
      const cut = event.value.finishReason === FinishReason.LENGTH;
      console.error(
        `\n[${event.value.usage.completionTokens} tokens]` +
          (cut ? ` cut at maxTokens, ${maxTokens}` : ""),
      );
    }
  }
} catch (error) {
  const { code, rawMessage, cause } = ConnectError.from(error);
  // An error that the server sent has no cause.
  console.error(
    code === Code.Unavailable && cause
      ? `no server answers at ${address}; is setu up running there?`
      : `${Code[code]}: ${rawMessage}`,
  );
  process.exit(1);
}
