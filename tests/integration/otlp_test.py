# SPDX-License-Identifier: Apache-2.0
"""Traces of a cluster of processes, read by OpenTelemetry's own generated code: what `setu up
--otlp-endpoint` sends is OTLP, and says what the answers say.

usage: otlp_test.py FOLDER-OF-SETU   (from the root of the tree, with the Python of build/venv)
"""
import concurrent.futures
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import grpc
from grpc_tools import protoc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as otlp
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2_grpc as otlp_rpc
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

TRACE = "0af7651916cd43dd8448eb211c80319c"
CALLER = "b7ad6b7169203331"
LIMIT = 60  # seconds for whatever is waited for


class Collector(otlp_rpc.TraceServiceServicer):
    """Keeps what it is sent; may die and come back to its port."""

    def __init__(self):
        self.changed = threading.Condition()
        self.requests = []
        self.port = 0
        self.start()

    def start(self):
        self.server = grpc.server(concurrent.futures.ThreadPoolExecutor(2),
                                  options=[("grpc.so_reuseport", 0)])
        otlp_rpc.add_TraceServiceServicer_to_server(self, self.server)
        self.port = self.server.add_insecure_port(f"127.0.0.1:{self.port}")
        self.server.start()

    def die(self):
        self.server.stop(0).wait()

    def Export(self, request, context):
        with self.changed:
            self.requests.append(request)
            self.changed.notify_all()
        return otlp.ExportTraceServiceResponse()

    def traces(self):
        """Lists of spans by the name of the request that they tell of; None: it says none."""
        out = {}
        for request in self.requests:
            for group in request.resource_spans:
                for scope in group.scope_spans:
                    names = {span.trace_id: attributes(span).get("setu.request_id")
                             for span in scope.spans if "/" in span.name}
                    for span in scope.spans:
                        out.setdefault(names[span.trace_id], []).append(span)
        return out

    def wait(self, name):
        with self.changed:
            assert self.changed.wait_for(lambda: name in self.traces(), LIMIT), f"no trace {name}"
            return self.traces()[name]


def attributes(message):
    return {a.key: getattr(a.value, a.value.WhichOneof("value")) for a in message.attributes}


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Otlp(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        made = cls.folder.name
        assert protoc.main(["protoc", "-I", "proto", "--python_out", made, "--grpc_python_out",
                            made, "proto/setu/v1/inference.proto"]) == 0
        sys.path.insert(0, made)
        from setu.v1 import inference_pb2, inference_pb2_grpc
        cls.pb = inference_pb2
        model = made + "/tiny.gguf"
        shape = "--layers 2 --hidden 64 --ffn 128 --heads 4 --kv-heads 2 --head-dim 16"
        subprocess.run([cls.setu, "model", "synth", "--out", model, "--type", "f32", "--vocabulary",
                        "320", "--context", "512", *shape.split()], check=True, timeout=LIMIT)
        cls.collector = Collector()
        address = f"127.0.0.1:{free_port()}"
        cls.up = subprocess.Popen(
            [cls.setu, "up", model, "--port", address.split(":")[1], "--drain-grace", "20s",
             "--otlp-endpoint", f"127.0.0.1:{cls.collector.port}"], stdout=subprocess.DEVNULL)
        cls.stub = inference_pb2_grpc.InferenceServiceStub(grpc.insecure_channel(address))
        deadline = time.monotonic() + LIMIT
        while True:
            try:
                cls.generate("ready")
                return
            except grpc.RpcError as error:
                assert time.monotonic() < deadline, error
                time.sleep(0.1)

    @classmethod
    def tearDownClass(cls):
        if cls.up.poll() is None:
            cls.up.kill()
            cls.up.wait()
        cls.collector.die()
        cls.folder.cleanup()

    @classmethod
    def generate(cls, name, metadata=(), **sampling):
        """The finished event of an answer to SECRET-PROMPT."""
        request = cls.pb.GenerateRequest(text="SECRET-PROMPT", request_id=name)
        sampling = {"max_tokens": 20, "temperature": 0, **sampling}
        request.sampling.MergeFrom(cls.pb.Sampling(**sampling))
        request.stopping.ignore_eos = True
        events = cls.stub.Generate(request, timeout=LIMIT, metadata=metadata, wait_for_ready=True)
        return [event for event in events][-1].finished

    def test_1_a_trace_says_what_the_answer_says(self):
        finished = self.generate("first", [("traceparent", f"00-{TRACE}-{CALLER}-01")])
        spans = self.collector.wait("first")
        root, rest = spans[0], {span.name: span for span in spans[1:]}
        self.assertEqual(root.name, "setu.v1.InferenceService/Generate")
        self.assertEqual(root.kind, Span.SPAN_KIND_SERVER)
        self.assertEqual(root.trace_id.hex(), TRACE)
        self.assertEqual(root.parent_span_id.hex(), CALLER)
        self.assertEqual(root.flags, 0x301)
        self.assertEqual(root.status.code, Status.STATUS_CODE_UNSET)
        self.assertEqual([event.name for event in root.events], ["first_token"])
        lengths = {}
        at = root.start_time_unix_nano
        for phase in ("queue", "grant", "prefill", "decode"):
            span = rest[phase]
            self.assertEqual(span.trace_id, root.trace_id)
            self.assertEqual(span.parent_span_id, root.span_id)
            self.assertEqual(span.start_time_unix_nano, at, phase)
            at = span.end_time_unix_nano
            lengths[phase] = (at - span.start_time_unix_nano) / 1e6
        self.assertEqual(at, root.end_time_unix_nano)
        self.assertLess(abs(time.time() - at / 1e9), 2 * LIMIT)
        for phase in ("queue", "grant", "prefill"):
            self.assertAlmostEqual(lengths[phase], getattr(finished.timings, f"{phase}_ms"), 5)
        self.assertEqual(rest["attempt"].kind, Span.SPAN_KIND_CLIENT)
        self.assertEqual(rest["attempt"].parent_span_id, root.span_id)
        self.assertTrue(attributes(rest["attempt"])["setu.decode_worker"].startswith("127.0.0.1:"))
        said = attributes(root)
        self.assertEqual(said["gen_ai.usage.input_tokens"], finished.usage.prompt_tokens)
        self.assertEqual(said["gen_ai.usage.output_tokens"], 20)
        self.assertEqual(said["setu.attempts"], finished.timings.attempts)
        self.assertEqual(said["setu.kv_bytes"], finished.timings.kv_bytes)
        self.assertEqual(said["rpc.grpc.status_code"], 0)

    def test_2_the_caller_decides_what_is_recorded(self):
        self.generate("unsampled", [("traceparent", f"00-{TRACE}-{CALLER}-00")])
        self.generate("own")
        self.generate("other")
        own, other = self.collector.wait("own"), self.collector.wait("other")
        self.assertEqual(own[0].parent_span_id, b"")
        self.assertEqual(own[0].flags, 0x101)
        self.assertNotEqual(own[0].trace_id, other[0].trace_id)
        self.assertNotIn("unsampled", self.collector.traces())

    def test_2_a_request_that_is_refused_is_a_span_alone(self):
        with self.assertRaises(grpc.RpcError) as refusal:
            self.generate("", [("x-request-id", "refused")], max_tokens=0)
        self.assertEqual(refusal.exception.code(), grpc.StatusCode.INVALID_ARGUMENT)
        (span,) = self.collector.wait("refused")
        self.assertEqual(span.status.code, Status.STATUS_CODE_UNSET)
        self.assertEqual(attributes(span)["rpc.grpc.status_code"], 3)

    def test_3_a_dead_collector_costs_no_answer_and_gets_the_rest_later(self):
        self.collector.die()
        for i in range(5):
            self.generate(f"meanwhile-{i}")
        self.collector.start()
        for i in range(5):
            self.collector.wait(f"meanwhile-{i}")

    def test_4_the_last_trace_is_delivered_before_the_end(self):
        self.generate("last")
        self.up.send_signal(signal.SIGINT)
        self.assertEqual(self.up.wait(LIMIT), 0)
        self.collector.wait("last")

    def test_5_nothing_in_them_is_unknown_or_secret(self):
        requests = self.collector.requests
        self.assertTrue(requests)
        for request in requests:
            known = otlp.ExportTraceServiceRequest()
            known.CopyFrom(request)
            known.DiscardUnknownFields()
            self.assertEqual(known, request)
            self.assertEqual(known.ByteSize(), request.ByteSize())
            self.assertNotIn(b"SECRET", request.SerializeToString())
            (group,) = request.resource_spans
            resource = attributes(group.resource)
            self.assertEqual(resource["service.name"], "setu-router")
            self.assertTrue(resource["service.instance.id"])


if __name__ == "__main__":
    Otlp.setu = os.path.join(sys.argv.pop(), "setu")
    sys.argv[1:] = ["-v", "-f"]
    unittest.main()
