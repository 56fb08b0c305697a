// One query of 32 vectors and 1,000 documents of late interaction, by posenc and by LibTorch: the
// product of all vectors alone, the operations of sentence_transformers.util.maxsim on documents
// that are padded already, and the same with the padding.

#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/einsum.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/pad_sequence.h>
#include <benchmark/benchmark.h>
#include <torch/types.h>

#include <limits>
#include <string>
#include <vector>

#include "posenc/models/functional/similarity.h"
#include "support/threads.h"

namespace {

constexpr int64_t kWidth = 128, kQuery = 32, kDocuments = 1000;

struct Texts {
  posenc::MultiVectors queries, documents;
  std::vector<torch::Tensor> apart;  // the documents
  torch::Tensor padded, mask;

  Texts(int64_t least, int64_t most) {
    torch::manual_seed(1);
    const auto lengths = torch::randint(least, most + 1, {kDocuments}, torch::kLong);
    queries = {torch::randn({kQuery, kWidth}), torch::tensor({kQuery})};
    documents = {torch::randn({lengths.sum().item<int64_t>(), kWidth}), lengths};
    apart = documents.embeddings.split_with_sizes(
        at::IntArrayRef(lengths.const_data_ptr<int64_t>(), kDocuments));
    padded = at::pad_sequence(apart, /*batch_first=*/true);
    mask = at::arange(padded.size(1)).unsqueeze(0) < lengths.unsqueeze(1);
  }

  torch::Tensor product() const { return at::matmul(documents.embeddings, queries.embeddings.t()); }
  torch::Tensor einsum(const torch::Tensor& of) const {
    const auto scores = at::einsum("ash,bth->abst", {queries.embeddings.unsqueeze(0), of});
    constexpr double kLeast = std::numeric_limits<float>::lowest();
    return scores.masked_fill_(mask.logical_not().unsqueeze(0).unsqueeze(2), kLeast)
        .amax(-1)
        .sum(-1);
  }
};

template <typename Work>
void score(benchmark::State& state, int64_t least, int64_t most, const Work& work) {
  const posenc::testing::Threads one_thread(1);
  const torch::NoGradGuard no_grad;
  const Texts texts(least, most);
  const auto ours = posenc::functional::maxsim(texts.queries, texts.documents);
  if (!at::allclose(ours, texts.einsum(texts.padded), 1e-4, 1e-3))
    return state.SkipWithError("the scores differ");
  for (auto _ : state) benchmark::DoNotOptimize(work(texts));
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations()) *
                          static_cast<int64_t>(texts.documents.embeddings.nbytes()));
}

int add(const std::string& size, int64_t least, int64_t most) {
  const auto one = [&](const std::string& name, auto work) {
    benchmark::RegisterBenchmark(("maxsim/" + name + "/" + size).c_str(),
                                 [=](benchmark::State& state) { score(state, least, most, work); })
        ->Unit(benchmark::kMicrosecond);
  };
  one("posenc", [](const Texts& t) { return posenc::functional::maxsim(t.queries, t.documents); });
  one("product", [](const Texts& t) { return t.product(); });
  one("padded", [](const Texts& t) { return t.einsum(t.padded); });
  one("package",
      [](const Texts& t) { return t.einsum(at::pad_sequence(t.apart, /*batch_first=*/true)); });
  return 0;
}

const int kShort = add("32-64", 32, 64), kLong = add("90-180", 90, 180);

}  // namespace
