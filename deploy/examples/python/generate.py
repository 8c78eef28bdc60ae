# SPDX-License-Identifier: Apache-2.0
"""Asks a Setu cluster a question and prints the answer as it streams.

usage: generate.py HOST:PORT "question"
"""
import sys

import grpc

from setu.v1 import inference_pb2 as pb
from setu.v1 import inference_pb2_grpc as rpc

MAX_TOKENS = 64


def main() -> int:
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    address, question = sys.argv[1:]
    request = pb.GenerateRequest(
        chat=pb.Chat(messages=[pb.ChatMessage(role="user", content=question)]),
        sampling=pb.Sampling(max_tokens=MAX_TOKENS, temperature=0),
    )
    with grpc.insecure_channel(address) as channel:
        try:
            grpc.channel_ready_future(channel).result(timeout=5)
        except grpc.FutureTimeoutError:
            print(f"no server answers at {address}; is setu up running there?", file=sys.stderr)
            return 1
        stub = rpc.InferenceServiceStub(channel)
        try:
            for response in stub.Generate(request, timeout=60):
                if response.HasField("delta"):
                    print(response.delta.text, end="", flush=True)
                elif response.HasField("finished"):
                    finished = response.finished
                    cut = finished.finish_reason == pb.FINISH_REASON_LENGTH
                    print(f"\n[{finished.usage.completion_tokens} tokens]"
                          + (f" cut at max_tokens, {MAX_TOKENS}" if cut else ""), file=sys.stderr)
        except grpc.RpcError as error:
            print(f"{error.code().name}: {error.details()}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
