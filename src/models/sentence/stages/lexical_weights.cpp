#include <ATen/TensorOperators.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>

#include <cmath>

#include "core/check.h"
#include "models/sentence/stages/stage_kind.h"
#include "posenc/core/cloneable.h"

namespace posenc::stages {
namespace {

using sentence::LexicalWeights;

class LexicalWeightsModule : public Cloneable<LexicalWeightsModule>, public StageModule {
 public:
  explicit LexicalWeightsModule(int64_t in_features) : in_features_(in_features) {
    LexicalWeightsModule::reset();
  }

  void reset() override {
    weight = register_parameter("weight", at::zeros({1, in_features_}));
    bias = register_parameter("bias", at::zeros({1}));
  }
  void reset_parameters() override {
    const torch::NoGradGuard no_grad;
    const double bound = 1.0 / std::sqrt(static_cast<double>(in_features_));  // torch.nn.Linear's
    weight.uniform_(-bound, bound);
    bias.uniform_(-bound, bound);
  }

  at::Tensor weight, bias;

 private:
  int64_t in_features_;
};

void follow_lexical(const sentence::Stage& any, const StagePlace& place, StageWidths& widths) {
  const auto& stage = std::get<LexicalWeights>(any);
  check_positive("SentenceStages", "vocab_size", stage.vocab_size);
  widths.check_width(sentence::Feature::Tokens, place, "in_features", stage.in_features);
  widths.sentence = stage.vocab_size;
}

void run_lexical(const sentence::Stage& any, const StageRun& run) {
  const auto& stage = std::get<LexicalWeights>(any);
  const auto& module = *run.module->as<LexicalWeightsModule>();
  const at::Tensor ids = token_ids(run, stage.vocab_size);
  at::Tensor is_left_out =
      run.features.mask.defined() ? run.features.mask.eq(0) : at::zeros(ids.sizes(), at::kBool);
  for (const int64_t id : stage.unused_token_ids) is_left_out = is_left_out | ids.eq(id);
  const at::Tensor weights = at::linear(run.features.tokens, module.weight, module.bias)
                                 .squeeze(-1)
                                 .relu()
                                 .masked_fill(is_left_out, 0.0);
  run.features.sentence = at::zeros({ids.size(0), stage.vocab_size}, weights.options())
                              .scatter_reduce(1, ids, weights, "amax");
}

std::shared_ptr<torch::nn::Module> make_lexical(const sentence::Stage& any) {
  return std::make_shared<LexicalWeightsModule>(std::get<LexicalWeights>(any).in_features);
}

}  // namespace

// Of no class of sentence-transformers, whose modules.json does not list it.
const StageKind kLexicalWeights = {.name = "LexicalWeights",
                                   .read = nullptr,
                                   .follow = follow_lexical,
                                   .run = run_lexical,
                                   .make = make_lexical};

}  // namespace posenc::stages
