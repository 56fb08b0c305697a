#include <c10/util/Exception.h>

#include "core/check.h"
#include "models/sentence/stage_module.h"
#include "posenc/models/sentence_stages.h"

namespace posenc {
namespace {

using sentence::Feature;

void check_there(int64_t width, std::size_t stage, const char* kind, Feature input) {
  TORCH_CHECK_VALUE(width > 0, "[SentenceStages] stage ", stage, ", ", kind, ", must follow one ",
                    "that makes its input, ",
                    input == Feature::Tokens ? "token_embeddings" : "sentence_embedding");
}

// Follows the widths through a stage, and checks that it can be applied.
struct FollowWidths {
  StageWidths& widths;
  std::size_t number;  // of the stage
  int64_t d_model;     // of the encoder

  void operator()(const sentence::Pooling& stage) const {
    check_there(widths.tokens, number, "Pooling", Feature::Tokens);
    TORCH_CHECK_VALUE(!stage.modes.empty(), "[SentenceStages] stage ", number,
                      ", Pooling, must have a mode, which it has not");
    widths.sentence = static_cast<int64_t>(stage.modes.size()) * widths.tokens;
  }
  void operator()(const sentence::Dense& stage) const {
    check_positive("SentenceStages", "out_features", stage.out_features);
    check_width(widths.of(stage.input), "Dense", "in_features", stage.in_features, stage.input);
    widths.of(stage.output) = stage.out_features;
  }
  void operator()(const sentence::Normalize& stage) const {
    check_there(widths.of(stage.input), number, "Normalize", stage.input);
    widths.of(stage.output) = widths.of(stage.input);
  }
  void operator()(const sentence::LayerNorm& stage) const {
    check_width(widths.sentence, "LayerNorm", "dimension", stage.dimension, Feature::Sentence);
  }
  void operator()(const sentence::Dropout& stage) const {
    check_there(widths.sentence, number, "Dropout", Feature::Sentence);
    TORCH_CHECK_VALUE(stage.p >= 0.0 && stage.p <= 1.0, "[SentenceStages] stage ", number,
                      ", Dropout, must have a probability. Got ", stage.p);
  }
  void operator()(const sentence::WeightedLayerPooling& stage) const {
    check_there(widths.tokens, number, "WeightedLayerPooling", Feature::Tokens);
    TORCH_CHECK_VALUE(stage.layer_start >= 0 && stage.layer_start <= stage.num_hidden_layers,
                      "[SentenceStages] stage ", number,
                      ", WeightedLayerPooling: layer_start must be from 0 to num_hidden_layers, ",
                      stage.num_hidden_layers, ". Got ", stage.layer_start);
    widths.tokens = d_model;
  }
  void operator()(const sentence::WordWeights& stage) const {
    check_there(widths.tokens, number, "WordWeights", Feature::Tokens);
    check_positive("SentenceStages", "vocab_size", stage.vocab_size);
  }
  void operator()(const sentence::CNN& stage) const {
    check_positive("SentenceStages", "out_channels", stage.out_channels);
    check_width(widths.tokens, "CNN", "in_embedding_dimension", stage.in_embedding_dimension,
                Feature::Tokens);
    const std::size_t convolutions = stage.kernel_sizes.size(), strides = stage.stride_sizes.size();
    TORCH_CHECK_VALUE(convolutions > 0, "[SentenceStages] stage ", number,
                      ", CNN, must have a kernel size, which it has not");
    TORCH_CHECK_VALUE(strides == 0 || strides == convolutions, "[SentenceStages] stage ", number,
                      ", CNN: stride_sizes must be as many as kernel_sizes, ", convolutions,
                      ". Got ", strides);
    for (const int64_t size : stage.kernel_sizes) {
      check_positive("SentenceStages", "each of kernel_sizes", size);
    }
    for (const int64_t size : stage.stride_sizes) {
      check_positive("SentenceStages", "each of stride_sizes", size);
    }
    widths.tokens = stage.out_channels * static_cast<int64_t>(convolutions);
  }

 private:
  void check_width(int64_t width, const char* kind, const char* what, int64_t got,
                   Feature input) const {
    check_there(width, number, kind, input);
    TORCH_CHECK_VALUE(width == got, "[SentenceStages] stage ", number, ", ", kind, ": ", what,
                      " must be the width of what it gets, ", width, ". Got ", got);
  }
};

}  // namespace

StageWidths widths_after(const SentenceStagesOptions& options) {
  check_positive("SentenceStages", "d_model", options.d_model());
  StageWidths widths;
  widths.of(options.takes_sentences() ? Feature::Sentence : Feature::Tokens) = options.d_model();
  std::size_t number = 0;
  for (const auto& stage : options.stages()) {
    std::visit(FollowWidths{widths, ++number, options.d_model()}, stage);
  }
  check_there(widths.sentence, number + 1, "the end", Feature::Sentence);
  return widths;
}

}  // namespace posenc
