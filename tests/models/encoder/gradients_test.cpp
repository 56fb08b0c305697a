// The outputs of loaded encoders are those of transformers, and so are the gradients, parameter by
// parameter.

#include <gtest/gtest.h>

#include <string_view>
#include <utility>

#include "posenc/models/encoder.h"
#include "posenc/weights/safetensors.h"

namespace posenc::testing {
namespace {

std::string trained_encoder(const std::string& name) {
  return POSENC_LIVE_DIR "/encoder/gradients/" + name;
}

class EncoderGradients : public ::testing::TestWithParam<std::string> {};

TEST_P(EncoderGradients, AreThoseOfTransformers) {
  constexpr double kBound = 1e-5;  // of the largest gradient of a parameter, and of the outputs
  auto model = load_encoder(trained_encoder(GetParam()));
  // A folder of the same model whose weights are the gradients.
  const auto expected = load_encoder(trained_encoder("grad/" + GetParam()))->named_parameters();
  const auto given = load_safetensors(trained_encoder(GetParam() + ".safetensors")).tensors;
  const bool has_features = given.contains("inputs_embeds");
  const bool is_text = given.contains("input_ids") || has_features;
  EncoderInputs inputs;
  if (has_features) inputs.inputs_embeds(given["inputs_embeds"]);
  if (given.contains("token_type_ids")) inputs.token_type_ids(given["token_type_ids"]);
  if (is_text) inputs.attention_mask(given["attention_mask"]);
  if (given.contains("bbox")) inputs.bbox(given["bbox"]);
  const auto input = has_features ? torch::Tensor() : given[is_text ? "input_ids" : "pixel_values"];
  const auto out = model->forward(input, inputs);
  const auto real = is_text ? given["attention_mask"].to(torch::kBool) : torch::Tensor();
  for (const auto& [got, name] : {std::pair(out.last_hidden_state, "value.last_hidden_state"),
                                  std::pair(out.pooled, "value.pooled")}) {
    if (!got.defined()) continue;
    const bool has_tokens = real.defined() && got.dim() == 3;
    const auto expected = has_tokens ? given[name].index({real}) : given[name];
    EXPECT_LE(((has_tokens ? got.index({real}) : got) - expected).abs().max().item<double>(),
              kBound)
        << name;
  }
  auto loss = (out.last_hidden_state * given["last_hidden_state"]).sum();
  ASSERT_EQ(out.pooled.defined(), given.contains("pooled"));
  if (out.pooled.defined()) loss = loss + (out.pooled * given["pooled"]).sum();
  loss.backward();
  for (const auto& item : model->named_parameters()) {
    const auto& parameter = expected[item.key()];
    if (!parameter.requires_grad()) continue;
    const auto& grad = item.value().grad();
    const auto got = grad.defined() ? grad : torch::zeros_like(parameter);
    double largest = parameter.abs().max().item<double>();
    // It moves all scores of a query alike, so that its gradient is 0 but for rounding.
    constexpr std::string_view kNone = "pos_key.bias";
    if (item.key().ends_with(kNone)) {
      const auto module = item.key().substr(0, item.key().size() - std::string_view("bias").size());
      largest = expected[module + "weight"].abs().max().item<double>();
    }
    EXPECT_LE((got - parameter).abs().max().item<double>(), kBound * largest) << item.key();
    const bool is_unused =
        item.key() == "embeddings.mask_token" || item.key().ends_with("mask_emb");
    EXPECT_TRUE(largest > 0.0 || is_unused) << item.key();
  }
}

INSTANTIATE_TEST_SUITE_P(Made, EncoderGradients,
                         ::testing::Values("albert", "bart", "bert", "clip", "convbert", "deberta",
                                           "deberta_v2", "deberta_v3", "dinov2", "dinov3",
                                           "distilbert", "embedding_gemma2", "esm", "esm1b", "esmc",
                                           "eurobert", "fnet", "gemma3", "gte", "jina", "layoutlm",
                                           "luke", "mobilebert", "modernbert", "mpnet", "nomic",
                                           "qwen3", "ultrabert", "vit", "wav2vec2_conformer",
                                           "wav2vec2_conformer_rotary", "xlm", "xlnet", "xmod"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace posenc::testing
