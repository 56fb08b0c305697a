// SPLADE with the shape of BERT-base, against SparseEncoder of sentence-transformers in another
// process (sparse_peers.py): the layer of the vocabulary with the pooling, whole documents of
// unequal lengths, and queries that are a look at a table. One thread.

#include <ATen/ops/allclose.h>
#include <benchmark/benchmark.h>

#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "posenc/models/frozen_classifier.h"
#include "posenc/text/sparse_encoder.h"
#include "posenc/weights/load.h"
#include "python_peer.h"
#include "support/threads.h"
#include "timed.h"

namespace {

posenc::PythonPeer& peer() {
  static posenc::PythonPeer one("sparse_peers.py");
  return one;
}

struct Cases {
  Cases() : tensors(posenc::load_tensors(peer().file("cases.safetensors"))) {
    std::ifstream file(peer().file("documents.txt"));
    for (std::string line; std::getline(file, line);) documents.push_back(line);
    const torch::Tensor& hidden = tensors["hidden"];  // (B, L, D)
    rows = hidden.flatten(0, 1);
    lengths.assign(static_cast<std::size_t>(hidden.size(0)), hidden.size(1));
    const auto are_close = [&](const posenc::SparseVectors& got, const char* name) {
      return at::allclose(got.to_torch().to_dense(), tensors[name], 1e-4, 1e-5);
    };
    are_equal = at::allclose(pooled(), tensors["pooled"], 1e-4, 1e-5) &&
                are_close(model.encode_document(documents), "vectors") &&
                are_close(model.encode_query({documents.back()}), "query");
  }
  torch::Tensor pooled() const { return head.largest_logits(rows, lengths).relu_().log1p_(); }

  posenc::StateDict tensors;
  posenc::FrozenClassifier head = posenc::freeze(posenc::load_classifier(peer().file("masked")));
  posenc::SparseEncoder model = posenc::load_sparse_encoder(peer().file("model"));
  torch::Tensor rows;
  std::vector<int64_t> lengths;
  std::vector<std::string> documents;
  bool are_equal = false;
};

const Cases& cases() {
  static const Cases all;
  return all;
}

const std::map<std::string, std::function<void(const Cases&)>> kCalls = {
    {"vocabulary", [](const Cases& c) { c.pooled(); }},
    {"documents", [](const Cases& c) { c.model.encode_document(c.documents); }},
    {"query", [](const Cases& c) { c.model.encode_query({c.documents.back()}); }}};

void ours(benchmark::State& state, const std::string& name) {
  const posenc::testing::Threads one_thread(1);
  const torch::NoGradGuard no_grad;
  if (!cases().are_equal) return state.SkipWithError("the vectors differ");
  posenc::benchmarks::timed(state, [&] { kCalls.at(name)(cases()); });
}

void theirs(benchmark::State& state, const std::string& name) {
  for (auto _ : state) state.SetIterationTime(peer().seconds(name));
}

const bool registered = [] {
  const auto as = [](benchmark::internal::Benchmark* made) {
    made->UseManualTime()->Unit(benchmark::kMicrosecond);
  };
  for (const auto& item : kCalls) {
    const std::string name = item.first;
    as(benchmark::RegisterBenchmark(("sparse/" + name + "/posenc/1").c_str(),
                                    [name](auto& state) { ours(state, name); }));
    as(benchmark::RegisterBenchmark(("sparse/" + name + "/sentence_transformers/1").c_str(),
                                    [name](auto& state) { theirs(state, name); }));
  }
  return true;
}();

}  // namespace
