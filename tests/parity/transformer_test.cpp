// Notebook 03: Transformer with its three kinds of weight sharing: masks, gradients, dropout with a
// seed, the constructor's random draws, and the tied copies in TorchScript and torch.save files.

#include "posenc/transformer/transformer.h"

#include <torch/utils.h>

#include "posenc/weights/load.h"
#include "posenc/weights/state_dict.h"
#include "support/layers.h"

namespace posenc::transformer_test {
namespace {

using testing::Fixture;
using testing::fixtures;

TransformerOptions options_of(const Fixture& fixture) {
  return TransformerOptions(fixture.option<int64_t>("src_vocab", 0),
                            fixture.option<int64_t>("tgt_vocab", 0))
      .d_model(fixture.option<int64_t>("width", 0))
      .num_heads(fixture.option<int64_t>("heads", 0))
      .num_encoder_layers(fixture.option<int64_t>("layers", 0))
      .num_decoder_layers(fixture.option<int64_t>("decoder_layers", 0))
      .d_ff(fixture.option<int64_t>("d_ff", 0))
      .max_len(fixture.option<int64_t>("max_len", 0))
      .dropout(fixture.option("dropout", 0.0))
      .tie(tying_of(fixture.option<std::string>("tying", "")))
      .activation(activation_of(fixture.option<std::string>("activation", "")))
      .norm_first(fixture.option("norm_first", false))
      .final_norm(fixture.option("final_norm", false))
      .layer_norm_eps(fixture.option("layer_norm_eps", 0.0))
      .bias(fixture.option("bias", true))
      .python_dropout_order(true)
      .embedding_init(EmbeddingInit::StandardNormal);
}

TEST(TransformerParity, FollowsTheNotebookUnderEveryTying) {
  for (const char* mode : {"eval", "train"}) {
    for (const Fixture& fixture : fixtures("transformer", mode)) {
      Transformer model(options_of(fixture));
      testing::expect_parity(
          fixture, *model,
          [&](const Golden& golden) {
            const auto src_mask =
                testing::torch_nn_mask(golden.inputs(), "src_mask", "src_key_padding_mask");
            std::optional<AttentionMask> memory_mask;
            if (golden.inputs().contains("memory_mask")) {  // combined with the padding mask
              memory_mask =
                  testing::torch_nn_mask(golden.inputs(), "memory_mask", "src_key_padding_mask");
            }
            return model->forward(golden.input("src"), golden.input("tgt"), src_mask,
                                  AttentionMask::blocked_pairs(golden.input("tgt_mask")),
                                  memory_mask);
          },
          testing::layer_parity());
    }
  }
}

TEST(TransformerParity, TorchNnTransformersStateDictIsThatOfTheStacks) {
  for (const Fixture& fixture : fixtures("torch_transformer", "eval")) {
    SCOPED_TRACE(fixture.name);
    const auto layer = testing::layer_options(fixture);
    TransformerEncoder encoder(
        TransformerEncoderOptions(layer, fixture.option<int64_t>("layers", 0)).norm(true));
    TransformerDecoder decoder(
        TransformerDecoderOptions(layer, fixture.option<int64_t>("decoder_layers", 0)).norm(true));
    const auto state = fixture.under("param.");
    const auto loaded = load_state_dict(*encoder, state, LoadOptions().prefix("encoder.")).loaded;
    const auto more = load_state_dict(*decoder, state, LoadOptions().prefix("decoder.")).loaded;
    EXPECT_EQ(loaded.size() + more.size(), state.size()) << "nothing is left over";
    const auto in = fixture.under("in.");
    const auto memory = encoder->forward(in["src"]);
    const auto out =
        decoder->forward(in["tgt"], memory, AttentionMask::blocked_pairs(in["tgt_mask"]));
    EXPECT_TRUE(testing::within(testing::Op::Layers, out, fixture["out.output"]));
  }
}

// TorchScript and torch.save write all copies of a tied matrix; safetensors' save_model writes one.
TEST(TransformerParity, LoadsTiedMatricesFromEveryFormat) {
  for (const std::string name : {"encoder_decoder", "decoder_output", "three_way"}) {
    const auto path = std::string(POSENC_LIVE_DIR) + "/transformer_scripts/" + name;
    const auto theirs = load_tensors(path + ".state.pt");
    const auto rows = [&](const std::string& key) { return theirs[key].size(0); };
    const auto layers = [&](const std::string& stack) {
      int64_t count = 0;
      while (theirs.contains(stack + ".layers." + std::to_string(count) + ".linear1.bias")) ++count;
      return count;
    };
    const auto options =
        TransformerOptions(rows("src_embedding.token_embedding.weight"), rows("final_layer.bias"))
            .d_model(theirs["final_layer.weight"].size(1))
            .num_heads(1)
            .num_encoder_layers(layers("encoder"))
            .num_decoder_layers(layers("decoder"))
            .d_ff(rows("encoder.layers.0.linear1.bias"))
            .max_len(theirs["src_embedding.position_encoding.pe"].size(1))
            .tie(tying_of(name))
            .final_norm(theirs.contains("encoder.norm.weight"));
    for (const char* format : {".pt", ".state.pt", ".model.safetensors"}) {
      Transformer model(options);
      load_weights(*model, path + format);
      for (const auto& item : state_dict(*model)) {
        EXPECT_TRUE(testing::bit_equal(item.value(), theirs[item.key()])) << item.key() << format;
      }
    }
  }
}

TEST(TransformerParity, DrawsTheNotebooksWeights) {
  for (const Fixture& fixture : fixtures("transformer", "init")) {
    torch::manual_seed(fixture.seed);
    testing::expect_drawn(fixture, *Transformer(options_of(fixture)));
  }
}

}  // namespace
}  // namespace posenc::transformer_test
