#include "posenc/positions/nn/audio_embeddings.h"

#include <ATen/autocast_mode.h>
#include <ATen/ops/gelu.h>

#include <ostream>

#include "core/check.h"
#include "core/print_fields.h"
#include "posenc/positions/functional/positional_encoding.h"
#include "posenc/positions/sinusoid/preset.h"
#include "positions/nn/audio_embeddings_internals.h"
#include "positions/nn/convolution.h"

namespace posenc {
namespace {

constexpr const char* kAudioEmbeddings = "AudioEmbeddings";

torch::nn::Conv1d convolution(int64_t in, int64_t width, int64_t stride) {
  return make_convolution(torch::nn::Conv1dOptions(in, width, 3).stride(stride).padding(1));
}

// Whether autocast gives a convolution of these features its dtype, whatever theirs is.
bool autocasts(const torch::Tensor& features) {
  return features.defined() && features.is_floating_point() &&
         features.scalar_type() != torch::kDouble &&
         at::autocast::is_autocast_enabled(features.device().type());
}

}  // namespace

void check_features(const char* module, const torch::Tensor& features,
                    const AudioEmbeddingsOptions& options, at::ScalarType dtype) {
  TORCH_CHECK_VALUE(features.defined(), "[", module, "] features must be (B, ",
                    options.num_mel_bins(), ", ", options.num_frames(),
                    "). Got an undefined tensor");
  TORCH_CHECK_VALUE(features.dim() == 3 && features.size(1) == options.num_mel_bins() &&
                        features.size(2) == options.num_frames(),
                    "[", module, "] features must be (B, ", options.num_mel_bins(), ", ",
                    options.num_frames(), "), mel bins and frames of each sound. Got ",
                    features.sizes());
  TORCH_CHECK_TYPE(features.scalar_type() == dtype, "[", module,
                   "] features must have the dtype of the weights, ", dtype, ". Got ",
                   features.scalar_type());
}

AudioEmbeddingsImpl::AudioEmbeddingsImpl(AudioEmbeddingsOptions options_)
    : options(std::move(options_)) {
  AudioEmbeddingsImpl::reset();
}

void AudioEmbeddingsImpl::reset() {
  check_positive(kAudioEmbeddings, "num_mel_bins", options.num_mel_bins());
  check_positive(kAudioEmbeddings, "d_model", options.d_model());
  TORCH_CHECK_VALUE(options.num_frames() > 0 && options.num_frames() % 2 == 0, "[",
                    kAudioEmbeddings, "] num_frames must be even and positive. Got ",
                    options.num_frames());
  check_dropout(kAudioEmbeddings, options.dropout());
  const int64_t width = options.d_model(), positions = options.num_positions();
  conv1 = register_module("conv1", convolution(options.num_mel_bins(), width, 1));
  conv2 = register_module("conv2", convolution(width, width, 2));
  if (options.learned_positions()) {
    position_embedding = register_module(
        "position_embedding",
        LearnedPositionEmbedding(LearnedPositionEmbeddingOptions(positions, width)));
  } else {
    const auto& own = options.sinusoid();
    position_encoding = register_module(
        "position_encoding",
        PositionalEncoding(PositionalEncodingOptions(width, positions)
                               .sinusoid(own ? *own : preset("hf_whisper", width))));
  }
  dropout = register_module("dropout", torch::nn::Dropout(options.dropout()));
}

void AudioEmbeddingsImpl::reset_parameters() {
  for (auto* conv : {&conv1, &conv2}) (*conv)->reset_parameters();
  if (position_embedding) position_embedding->reset_parameters();
}

void AudioEmbeddingsImpl::pretty_print(std::ostream& stream) const {
  fields::print_module(stream, kAudioEmbeddings, options, AudioEmbeddingsOptions(-1, -1));
}

torch::Tensor AudioEmbeddingsImpl::forward(const torch::Tensor& input_features) {
  check_features(
      kAudioEmbeddings, input_features, options,
      autocasts(input_features) ? input_features.scalar_type() : conv1->weight.scalar_type());
  const torch::Tensor narrow = at::gelu(conv1->forward(input_features));
  const torch::Tensor x = at::gelu(conv2->forward(narrow)).transpose(1, 2);  // (B, W / 2, D)
  const torch::Tensor& table =
      position_embedding ? position_embedding->weight : position_encoding->pe;
  return dropout->forward(functional::positional_encoding(x, table));
}

}  // namespace posenc
