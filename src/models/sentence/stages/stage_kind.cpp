#include "models/sentence/stages/stage_kind.h"

#include <ATen/TensorOperators.h>
#include <c10/util/Exception.h>

#include <iterator>
#include <variant>

#include "core/check.h"

namespace posenc {
namespace {

using sentence::Feature;

Feature feature_in(const Settings& config, const char* name, const std::string& fallback) {
  const std::string given = config.text(name, fallback);
  if (given == "sentence_embedding") return Feature::Sentence;
  if (given != "token_embeddings") {
    config.refuse(name, "must be sentence_embedding or token_embeddings");
  }
  return Feature::Tokens;
}

const StageKind* const kStageKinds[] = {&stages::kPooling,
                                        &stages::kDense,
                                        &stages::kNormalize,
                                        &stages::kLayerNorm,
                                        &stages::kDropout,
                                        &stages::kWeightedLayerPooling,
                                        &stages::kWordWeights,
                                        &stages::kCNN,
                                        &stages::kSpladePooling,
                                        &stages::kSparseAutoEncoder,
                                        &stages::kSparseStaticEmbedding,
                                        &stages::kLexicalWeights,
                                        &stages::kMultiVectorMask,
                                        &stages::kTokenPooling};
static_assert(std::size(kStageKinds) == std::variant_size_v<sentence::Stage>);

}  // namespace

void StageWidths::check_there(Feature read, const StagePlace& place) {
  TORCH_CHECK_VALUE(of(read) > 0, place, ", must follow one that makes its input, ",
                    read == Feature::Tokens ? "token_embeddings" : "sentence_embedding");
}

void StageWidths::check_width(Feature read, const StagePlace& place, const char* name,
                              int64_t own) {
  check_there(read, place);
  TORCH_CHECK_VALUE(of(read) == own, place, ": ", name, " must be the width of what it gets, ",
                    of(read), ". Got ", own);
}

std::span<const StageKind* const> stage_kinds() { return kStageKinds; }

const StageKind& kind_of(const sentence::Stage& stage) { return *kStageKinds[stage.index()]; }

StageWidths widths_after(const SentenceStagesOptions& options) {
  TORCH_CHECK_VALUE(options.d_model() >= 0,
                    "[SentenceStages] d_model must be positive, or 0 for stages that are given ids "
                    "alone. Got ",
                    options.d_model());
  StageWidths widths = {options.d_model()};
  widths.of(options.takes_sentences() ? Feature::Sentence : Feature::Tokens) = options.d_model();
  std::size_t number = 0;
  for (const sentence::Stage& stage : options.stages()) {
    const StageKind& kind = kind_of(stage);
    const StagePlace place = {++number, kind.name};
    TORCH_CHECK_VALUE(!widths.are_rows || kind.takes_rows, place,
                      ", must not follow one that leaves tokens out. Got one before it");
    kind.follow(stage, place, widths);
  }
  widths.check_there(options.result(), {number + 1, "the end"});
  return widths;
}

namespace stages {

at::Tensor token_ids(const StageRun& run, int64_t vocab_size) {
  const at::Tensor& ids = run.features.ids;
  TORCH_CHECK_VALUE(ids.defined(), run.place, ", needs input_ids, which it did not get");
  const at::Tensor own = ids.to(at::kLong);
  const bool are_known = own.numel() == 0 ||
                         (own.min().item<int64_t>() >= 0 && own.max().item<int64_t>() < vocab_size);
  TORCH_CHECK_VALUE(are_known, run.place, ": input_ids must be from 0 to ", vocab_size - 1,
                    ". Got others");
  return own;
}

std::pair<Feature, Feature> features_in(const Settings& config) {
  const std::string default_name = "sentence_embedding";
  const Feature input = feature_in(config, "module_input_name", default_name);
  return {input,
          feature_in(config, "module_output_name", config.text("module_input_name", default_name))};
}

}  // namespace stages
}  // namespace posenc
