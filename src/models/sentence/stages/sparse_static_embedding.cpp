#include <ATen/TensorOperators.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>

#include <filesystem>

#include "core/check.h"
#include "models/sentence/stages/stage_kind.h"
#include "posenc/core/cloneable.h"
#include "posenc/weights/manifest.h"
#include "weights/common/file.h"

namespace posenc::stages {
namespace {

using sentence::SparseStaticEmbedding;

class SparseStaticEmbeddingModule : public Cloneable<SparseStaticEmbeddingModule>,
                                    public StageModule {
 public:
  explicit SparseStaticEmbeddingModule(int64_t vocab_size) : vocab_size_(vocab_size) {
    SparseStaticEmbeddingModule::reset();
  }

  void reset() override { weight = register_parameter("weight", at::ones({vocab_size_})); }
  void reset_parameters() override {
    const torch::NoGradGuard no_grad;
    weight.fill_(1.0);
  }

  at::Tensor weight;

 private:
  int64_t vocab_size_;
};

// The number of tokens is that of the weights; those in a file by tokens are the tokenizer's.
sentence::Stage read_sparse_static(const Settings& config) {
  const std::string path = config.text("path", "");
  if (path.ends_with(".json")) return SparseStaticEmbedding{0};
  const auto folder = std::filesystem::path(config.path()).parent_path();
  for (const char* name : kStageWeights) {
    const auto file = (folder / name).string();
    if (!io::may_exist(file)) continue;
    for (const ManifestTensor& tensor : read_manifest(file).tensors)
      if (tensor.name == "weight" && tensor.sizes.size() == 1 && tensor.sizes[0] > 0)
        return SparseStaticEmbedding{tensor.sizes[0]};
    throw WeightsError(WeightsErrorCode::Corrupt, "must be a weight (V) of each token")
        .in_tensor("weight")
        .in_file(file)
        .in_function(config.caller());
  }
  throw WeightsError(WeightsErrorCode::NotFound, "must hold model.safetensors or pytorch_model.bin")
      .in_file(folder.string())
      .in_function(config.caller());
}

void follow_sparse_static(const sentence::Stage& any, const StagePlace& place,
                          StageWidths& widths) {
  const int64_t vocab = std::get<SparseStaticEmbedding>(any).vocab_size;
  TORCH_CHECK_VALUE(vocab > 0, place,
                    ": vocab_size must be positive; that of a file of weights by tokens is the "
                    "tokenizer's, with which load_sparse_encoder() loads it. Got ",
                    vocab);
  if (widths.sentence > 0)
    widths.check_width(sentence::Feature::Sentence, place, "vocab_size", vocab);
  widths.sentence = vocab;
}

void run_sparse_static(const sentence::Stage& any, const StageRun& run) {
  const at::Tensor ids = token_ids(run, std::get<SparseStaticEmbedding>(any).vocab_size);
  const at::Tensor& weight = run.module->as<SparseStaticEmbeddingModule>()->weight;
  const at::Tensor& mask = run.features.mask;
  const at::Tensor is_token = mask.defined() ? mask.ne(0).to(weight.scalar_type())
                                             : at::ones(ids.sizes(), weight.options());
  const at::Tensor present = at::zeros({ids.size(0), weight.size(0)}, is_token.options())
                                 .scatter_reduce(1, ids, is_token, "amax");
  at::Tensor& sentence = run.features.sentence;
  sentence = sentence.defined() ? present * weight * sentence : present * weight;
}

std::shared_ptr<torch::nn::Module> make_sparse_static(const sentence::Stage& any) {
  return std::make_shared<SparseStaticEmbeddingModule>(
      std::get<SparseStaticEmbedding>(any).vocab_size);
}

}  // namespace

const StageKind kSparseStaticEmbedding = {.name = "SparseStaticEmbedding",
                                          .read = read_sparse_static,
                                          .follow = follow_sparse_static,
                                          .run = run_sparse_static,
                                          .make = make_sparse_static};

}  // namespace posenc::stages
