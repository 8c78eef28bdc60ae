# SPDX-License-Identifier: Apache-2.0
"""Asks a Setu cluster a question and prints the answer as it streams.

usage: generate.py HOST:PORT "question"
"""
import sys

import grpc

from setu.v1 import inference_pb2 as pb
from setu.v1 import inference_pb2_grpc as rpc


def main() -> int:
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    address, question = sys.argv[1:]
    request = pb.GenerateRequest(
        chat=pb.Chat(messages=[pb.ChatMessage(role="user", content=question)]),
        sampling=pb.Sampling(max_tokens=64, temperature=0),
    )
    with grpc.insecure_channel(address) as channel:
        stub = rpc.InferenceServiceStub(channel)
        try:
            for response in stub.Generate(request, timeout=60):
                if response.HasField("delta"):
                    print(response.delta.text, end="", flush=True)
                elif response.HasField("finished"):
                    usage = response.finished.usage
                    print(f"\n[{usage.completion_tokens} tokens]", file=sys.stderr)
        except grpc.RpcError as error:
            print(f"{error.code().name}: {error.details()}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
