// BERT's embeddings, V = 30,522, from token ids to the first layer's input: ours against the
// composition of LibTorch modules, in eval, and as a training step (forward, dropout, backward, new
// gradients). Names end in batch/length/threads; tools/bench.py prints the ratios.

#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <benchmark/benchmark.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/normalization.h>
#include <torch/utils.h>

#include <string>

#include "benchmarks/fingerprint.h"
#include "posenc/positions/functional/encoder_embeddings.h"

namespace {

using posenc::benchmarks::fingerprint;
using posenc::benchmarks::once;
namespace F = posenc::functional;

constexpr int64_t kVocabulary = 30522, kPositions = 512, kWidth = 768;
constexpr double kDropout = 0.1, kEps = 1e-12;

struct BertEmbeddings {
  BertEmbeddings()
      : tokens(kVocabulary, kWidth),
        positions(kPositions, kWidth),
        types(2, kWidth),
        norm(torch::nn::LayerNormOptions({kWidth}).eps(kEps)),
        dropout(kDropout) {}

  at::Tensor composed(const at::Tensor& ids) {
    at::Tensor x = tokens->forward(ids) + types->forward(at::zeros_like(ids));
    x = x + positions->forward(at::arange(ids.size(1), ids.options()).unsqueeze(0));
    return dropout->forward(norm->forward(x));
  }
  at::Tensor fused(const at::Tensor& ids) {
    F::EncoderEmbeddingsWeights weights;
    weights.tokens = tokens->weight;
    weights.positions = positions->weight;
    weights.token_types = types->weight;
    weights.norm_weight = norm->weight;
    weights.norm_bias = norm->bias;
    return F::encoder_embeddings(
        ids, weights,
        F::EncoderEmbeddingsFuncOptions().layer_norm_eps(kEps).dropout(kDropout).training(
            dropout->is_training()));
  }
  void forget_gradients() {
    for (const at::Tensor* weight :
         {&tokens->weight, &positions->weight, &types->weight, &norm->weight, &norm->bias})
      weight->mutable_grad() = at::Tensor();
  }

  torch::nn::Embedding tokens, positions, types;
  torch::nn::LayerNorm norm;
  torch::nn::Dropout dropout;
};

// Created once, because drawing the weights takes longer than most measurements.
BertEmbeddings& bert_embeddings() {
  static BertEmbeddings made = [] {
    torch::manual_seed(1);
    return BertEmbeddings();
  }();
  return made;
}

using EmbeddingsForward = at::Tensor (BertEmbeddings::*)(const at::Tensor&);

at::Tensor ids_of(const benchmark::State& state) {
  torch::manual_seed(2);
  return at::randint(kVocabulary, {state.range(0), state.range(1)}, at::kLong);
}

// Labels a case with the fingerprint of its result, which must be that of the composition.
template <typename Result>
void compare_embeddings(benchmark::State& state, const std::string& family,
                        EmbeddingsForward forward, const Result& result) {
  const std::string name = family + (forward == &BertEmbeddings::fused ? "fused" : "composed") +
                           std::to_string(state.range(0)) + "/" + std::to_string(state.range(1)) +
                           "/" + std::to_string(state.range(2));
  const std::string& label = once(name, [&] {
    const at::Tensor ours = result(forward);
    return ours.equal(result(&BertEmbeddings::composed)) ? fingerprint(ours) : "";
  });
  if (label.empty()) state.SkipWithError("not the composition's result");
  state.SetLabel(label);
}

void evaluate_embeddings(benchmark::State& state, EmbeddingsForward forward) {
  at::set_num_threads(static_cast<int>(state.range(2)));
  const torch::NoGradGuard no_grad;
  BertEmbeddings& embeddings = bert_embeddings();
  embeddings.dropout->train(false);
  const at::Tensor ids = ids_of(state);
  compare_embeddings(state, "eval", forward,
                     [&](EmbeddingsForward of) { return (embeddings.*of)(ids); });
  for (auto _ : state) benchmark::DoNotOptimize((embeddings.*forward)(ids));
}

void train_embeddings(benchmark::State& state, EmbeddingsForward forward) {
  at::set_num_threads(static_cast<int>(state.range(2)));
  BertEmbeddings& embeddings = bert_embeddings();
  embeddings.dropout->train(true);
  const at::Tensor ids = ids_of(state);
  const at::Tensor grad = at::randn({ids.size(0), ids.size(1), kWidth});
  compare_embeddings(state, "train", forward, [&](EmbeddingsForward of) {
    torch::manual_seed(7);
    embeddings.forget_gradients();
    (embeddings.*of)(ids).backward(grad);
    return embeddings.tokens->weight.grad();
  });
  for (auto _ : state) {
    embeddings.forget_gradients();
    (embeddings.*forward)(ids).backward(grad);
  }
  embeddings.forget_gradients();
}

const bool registered_embeddings = [] {
  for (const auto& [name, forward] : {std::pair("composed", &BertEmbeddings::composed),
                                      std::pair("fused", &BertEmbeddings::fused)}) {
    const auto f = forward;
    const auto add = [&](const std::string& family, auto body) {
      return benchmark::RegisterBenchmark((family + "/" + name).c_str(), body)
          ->UseRealTime()
          ->Unit(benchmark::kMicrosecond);
    };
    auto* const eval =
        add("embeddings", [f](benchmark::State& state) { evaluate_embeddings(state, f); });
    auto* const train =
        add("embeddings_train", [f](benchmark::State& state) { train_embeddings(state, f); });
    for (const int64_t threads : {1, 2}) {
      for (const auto& [batch, length] : {std::pair(1, 1), std::pair(1, 16), std::pair(1, 128),
                                          std::pair(8, 128), std::pair(32, 128)})
        eval->Args({batch, length, threads});
      train->Args({1, 16, threads})->Args({8, 128, threads});
    }
  }
  return true;
}();

}  // namespace
