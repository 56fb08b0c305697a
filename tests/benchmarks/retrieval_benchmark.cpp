// A cross-encoder of MiniLM's shape on a query and 100 documents, against CrossEncoder of
// sentence-transformers, and 100,000 vectors of 384 entries to 8 bits and 1 bit and compared,
// against numpy, in another process (retrieval_peers.py). One thread.

#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>
#include <benchmark/benchmark.h>

#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "posenc/models/functional/quantize.h"
#include "posenc/text/reranker.h"
#include "posenc/weights/load.h"
#include "python_peer.h"
#include "support/threads.h"
#include "timed.h"

namespace {

namespace F = posenc::functional;

posenc::PythonPeer& peer() {
  static posenc::PythonPeer one("retrieval_peers.py");
  return one;
}

struct Cases {
  Cases() : tensors(posenc::load_tensors(peer().file("cases.safetensors"))) {
    std::ifstream file(peer().file("pairs.txt"));
    std::getline(file, query);
    for (std::string line; std::getline(file, line);) documents.push_back(line);
    bits = F::pack_bits(tensors["x"]);
    std::vector<std::pair<std::string, std::string>> pairs;
    for (const std::string& document : documents) pairs.emplace_back(query, document);
    const torch::Tensor levels = tensors["levels"];
    const torch::Tensor first = tensors["x"].narrow(0, 0, levels.size(0));
    are_equal =
        at::allclose(model.score(pairs), tensors["scores"], 1e-4, 1e-5) &&
        at::equal(F::quantize_embeddings(first, F::EmbeddingPrecision::Int8, tensors["ranges"])
                      .embeddings,
                  levels) &&
        at::equal(F::pack_bits(first), tensors["bits"]);
  }

  posenc::StateDict tensors;
  posenc::Reranker model = posenc::load_reranker(peer().file("model"));
  std::string query;
  std::vector<std::string> documents;
  torch::Tensor bits;
  bool are_equal = false;
};

const Cases& cases() {
  static const Cases all;
  return all;
}

const std::map<std::string, std::function<void(const Cases&)>> kCalls = {
    {"rank", [](const Cases& c) { c.model.rank(c.query, c.documents); }},
    {"levels",
     [](const Cases& c) {
       F::quantize_embeddings(c.tensors["x"], F::EmbeddingPrecision::Int8, c.tensors["ranges"]);
     }},
    {"bits", [](const Cases& c) { F::pack_bits(c.tensors["x"]); }},
    {"hamming", [](const Cases& c) { F::hamming_distance(c.bits.narrow(0, 0, 1), c.bits); }}};

void ours(benchmark::State& state, const std::string& name) {
  const posenc::testing::Threads one_thread(1);
  if (!cases().are_equal) state.SkipWithError("the results differ from sentence-transformers");
  posenc::benchmarks::timed(state, [&] { kCalls.at(name)(cases()); });
}

void theirs(benchmark::State& state, const std::string& name) {
  for (auto _ : state) state.SetIterationTime(peer().seconds(name));
}

const bool registered = [] {
  const auto as = [](benchmark::internal::Benchmark* made) {
    made->UseManualTime()->Unit(benchmark::kMillisecond);
  };
  for (const auto& item : kCalls) {
    const std::string name = item.first;
    as(benchmark::RegisterBenchmark(("retrieval/" + name + "/posenc/1").c_str(),
                                    [name](auto& state) { ours(state, name); }));
    as(benchmark::RegisterBenchmark(("retrieval/" + name + "/sentence_transformers/1").c_str(),
                                    [name](auto& state) { theirs(state, name); }));
  }
  return true;
}();

}  // namespace
