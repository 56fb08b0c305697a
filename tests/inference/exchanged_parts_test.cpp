// Parts of a model that were exchanged, or whose options were changed, before freeze(): a frozen
// model computes what the module computes, or freeze() names the part.

#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>

#include <functional>
#include <utility>

#include "inference/freezable_models.h"
#include "inference/models.h"
#include "posenc/inference/freeze.h"
#include "support/compare.h"
#include "transformer/tiny.h"

namespace posenc::testing {
namespace {

using LayerOptions = TransformerLayerOptions;

LayerOptions small() { return LayerOptions(16, 2).d_ff(24).dropout(0.0); }

TransformerEncoder encoder_of(const LayerOptions& last) {
  torch::manual_seed(seed(1));
  TransformerEncoder encoder(TransformerEncoderOptions(small(), 2));
  encoder->layers->push_back(TransformerEncoderLayer(last));
  encoder->eval();
  return encoder;
}

TransformerEncoderLayerImpl& last_layer(TransformerEncoderImpl& encoder) {
  return *encoder.layers[encoder.layers->size() - 1]->as<TransformerEncoderLayer>();
}

TEST(ExchangedParts, ALayerMayHaveItsOwnActivationWidthAndEpsilon) {
  const torch::NoGradGuard no_grad;
  for (const auto& own : {small().activation(Activation::GELU), small().d_ff(40),
                          small().layer_norm_eps(0.5), small().bias(false)}) {
    auto encoder = encoder_of(own);
    const auto x = torch::randn({2, 5, 16});
    EXPECT_TRUE(within(Op::Layers, freeze(encoder).forward(x), encoder->forward(x)));
  }
}

TEST(ExchangedPartsErrors, NameTheLayerTheOptionAndItsValue) {
  const std::pair<LayerOptions, const char*> cases[] = {
      {LayerOptions(16, 4).d_ff(24),
       "[freeze] layers.2.self_attn: num_heads must be 2, as in the rest of the model. Got 4"},
      {small().norm_first(true),
       "layers.2: norm_first must be false, as in the rest of the model. "
       "Got true"},
      {small().batch_first(false), "layers.2.self_attn: batch_first must be true, as in the rest"},
      {LayerOptions(8, 2).d_ff(24), "layers.2.self_attn: embed_dim must be 16"},
      {small().disentangled(DisentangledOptions(8)),
       "layers.2: disentangled must be false, as in the rest of the model. Got true"},
      {small().transformer_xl(TransformerXLOptions(SinusoidOptions(16))),
       "layers.2: transformer_xl must be false, as in the rest of the model. Got true"},
  };
  for (const auto& [own, text] : cases)
    EXPECT_ERROR(freeze(encoder_of(own)), c10::ValueError, text);
}

TEST(ExchangedPartsErrors, NameTheTensorAndItsShape) {
  using Layer = TransformerEncoderLayerImpl;
  const std::pair<std::function<void(Layer&)>, const char*> cases[] = {
      {[](Layer& layer) {
         layer.linear2 = layer.replace_module("linear2", torch::nn::Linear(24, 2400));
       },
       "[freeze] layers.2.linear2.weight must be [16, 24]. Got [2400, 24]"},
      {[](Layer& layer) {
         layer.linear1 = layer.replace_module("linear1", torch::nn::Linear(17, 24));
       },
       "layers.2.linear1.weight must be [24, 16]. Got [24, 17]"},
      {[](Layer& layer) { layer.linear2->bias = torch::zeros({3}); },
       "layers.2.linear2.bias must be [16]. Got [3]"},
      {[](Layer& layer) { layer.norm1 = layer.replace_module("norm1", TransformerNorm(8)); },
       "layers.2.norm1: d_model must be 16"},
      {[](Layer& layer) { layer.norm2->weight = torch::ones({3}); },
       "layers.2.norm2.weight must be [16]. Got [3]"},
      {[](Layer& layer) { layer.norm2->weight = torch::Tensor(); },
       "layers.2.norm2.weight must be [16]. Got an undefined tensor"},
      {[](Layer& layer) { layer.self_attn->in_proj_bias = torch::zeros({16}); },
       "layers.2.self_attn.in_proj_bias must be [48]. Got [16]"},
      {[](Layer& layer) { layer.linear1->weight = torch::zeros({24, 16}, torch::kDouble); },
       "the model must be float32: layers.2.linear1.weight. Got Double"},
  };
  for (const auto& [change, text] : cases) {
    auto encoder = encoder_of(small());
    change(last_layer(*encoder));
    EXPECT_ERROR(freeze(encoder), c10::Error, text);
  }
  auto encoder = encoder_of(small());
  encoder->norm = encoder->register_module("norm", TransformerNorm(8));
  EXPECT_ERROR(freeze(encoder), c10::ValueError, "[freeze] norm: d_model must be 16");
  encoder = encoder_of(small());
  encoder->layers = encoder->replace_module("layers", torch::nn::ModuleList());
  EXPECT_ERROR(freeze(encoder), c10::ValueError, "[freeze] layers must contain at least one layer");
}

TEST(ExchangedPartsErrors, NameThePartOfATransformer) {
  const auto refused = [](const char* text, const std::function<void(TransformerImpl&)>& change) {
    auto model = tiny_model();
    change(*model);
    EXPECT_ERROR(freeze(model), c10::ValueError, text);
  };
  const auto stack = [](int64_t width) { return LayerOptions(width, 2).d_ff(12); };
  refused("[freeze] decoder.layers.2.self_attn: num_heads must be 2", [](TransformerImpl& model) {
    model.decoder->layers->push_back(TransformerDecoderLayer(LayerOptions(8, 4).d_ff(12)));
  });
  refused("[freeze] decoder.layers.0.multihead_attn: num_heads must be 2",
          [](TransformerImpl& model) {
            auto& layer = *model.decoder->layers[0]->as<TransformerDecoderLayer>();
            layer.multihead_attn = layer.replace_module("multihead_attn", MultiheadAttention(8, 4));
          });
  refused("[freeze] decoder.layers.0.self_attn: num_kv_heads must be 2",
          [](TransformerImpl& model) {
            auto& layer = *model.decoder->layers[0]->as<TransformerDecoderLayer>();
            layer.self_attn = layer.replace_module(
                "self_attn", MultiheadAttention(MultiheadAttentionOptions(8, 2).num_kv_heads(1)));
          });
  refused("[freeze] encoder: d_model must be 8", [&](TransformerImpl& model) {
    model.encoder =
        model.replace_module("encoder", TransformerEncoder(TransformerEncoderOptions(stack(6), 1)));
  });
  refused("[freeze] encoder: batch_first must be true", [&](TransformerImpl& model) {
    model.encoder = model.replace_module(
        "encoder", TransformerEncoder(TransformerEncoderOptions(stack(8).batch_first(false), 1)));
  });
  const auto embedding = [](const TokenAndPositionEmbeddingOptions& options) {
    return [options](TransformerImpl& model) {
      model.src_embedding =
          model.replace_module("src_embedding", TokenAndPositionEmbedding(options));
    };
  };
  using Options = TokenAndPositionEmbeddingOptions;
  refused("[freeze] src_embedding.position_encoding: batch_first must be true",
          embedding(Options(11, 8, 16).batch_first(false)));
  refused("[freeze] src_embedding.token_embedding.weight must be [11, 8]. Got [11, 6]",
          embedding(Options(11, 6, 16)));
  refused("[freeze] src_embedding must have a table of positions",
          embedding(Options(11, 8, 16).table_source(TableSource::OnTheFly)));
  refused("[freeze] max_norm is not supported", [](TransformerImpl& model) {
    model.tgt_embedding->token_embedding->options.max_norm(1.0);
  });
  refused("[freeze] final_layer.weight must be [9, 8]. Got [9, 6]", [](TransformerImpl& model) {
    model.final_layer = model.replace_module("final_layer", OutputProjection(6, 9));
  });
}

TEST(ExchangedParts, AnOutputTiedToAnotherEmbedding) {
  const torch::NoGradGuard no_grad;
  auto model = tiny_model(tiny().tgt_vocab(11));
  const auto src = torch::tensor({{3, 4, 5}}), tgt = torch::tensor({{1, 6}});
  model->final_layer->tie(model->src_embedding->token_embedding);
  EXPECT_TRUE(bit_equal(model->final_layer->effective_weight(),
                        model->src_embedding->token_embedding->weight));
  const auto memory = model->encode(src);
  const auto frozen = freeze(model);
  EXPECT_TRUE(within(Op::Layers, frozen.decode(tgt, memory), model->decode(tgt, memory)));
  model->final_layer->tie(model->tgt_embedding->token_embedding);
  EXPECT_ERROR(frozen.decode(tgt, memory), c10::Error, "Got other options of final_layer");
}

// A layer is what its options say, also where other modules would fit each other.
TEST(ExchangedPartsErrors, NameTheWidthOfTheOptions) {
  auto encoder = encoder_of(small());
  auto& layer = last_layer(*encoder);
  layer.linear1 = layer.replace_module("linear1", torch::nn::Linear(16, 40));
  layer.linear2 = layer.replace_module("linear2", torch::nn::Linear(40, 16));
  EXPECT_ERROR(freeze(encoder), c10::ValueError,
               "[freeze] layers.2.linear1.weight must be [24, 16]. Got [40, 16]");
  layer.options.d_ff(40);
  const torch::NoGradGuard no_grad;
  const auto x = torch::randn({2, 5, 16});
  EXPECT_TRUE(within(Op::Layers, freeze(encoder).forward(x), encoder->forward(x)));
}

// Of every kind of layer: freeze() knows each tensor that a frozen model reads.
TEST(ExchangedPartsErrors, NameEachTensorOfAnotherShape) {
  for (const FreezableModel& model : freezable_stacks()) {
    SCOPED_TRACE(model.name);
    auto tensors = model.model->named_parameters();
    for (const auto& item : model.model->named_buffers()) tensors.insert(item.key(), item.value());
    for (const auto& item : tensors) {
      const bool is_read = item.key().find("inv_freq") == std::string::npos &&  // of any length
                           item.value().is_floating_point();
      if (!is_read) continue;
      torch::Tensor tensor = item.value();
      const torch::Tensor data = tensor.data();
      std::vector<int64_t> sizes = data.sizes().vec();
      sizes.back() += 1;
      tensor.set_data(torch::zeros(sizes));
      EXPECT_ERROR(model.freeze(), c10::ValueError, "[freeze] " + item.key() + " must be ");
      tensor.set_data(data);
    }
    EXPECT_NO_THROW(model.freeze());
  }
}

// A buffer that no layer uses may have any integer type, and change.
TEST(ExchangedParts, ACounterIsNoWeight) {
  auto encoder = encoder_of(small());
  auto count = encoder->register_buffer("count", torch::zeros({}, torch::kLong));
  const auto frozen = freeze(encoder);
  count.add_(1);
  EXPECT_NO_THROW(frozen.forward(torch::zeros({1, 2, 16})));
}

template <typename Layer>
TransformerEncoder one_layer(const LayerOptions& options,
                             const std::function<void(Layer&)>& change) {
  TransformerEncoder encoder(TransformerEncoderOptions(options, 1));
  encoder->eval();
  change(encoder->layers->at<Layer>(0));
  return encoder;
}

TEST(ExchangedPartsErrors, NameTheAttentionOfOtherKindsOfLayers) {
  const auto refused = [](const TransformerEncoder& encoder, const char* text) {
    EXPECT_ERROR(freeze(encoder), c10::ValueError, text);
  };
  using Plain = TransformerEncoderLayerImpl;
  const auto distances = small().disentangled(DisentangledOptions(8));
  refused(one_layer<Plain>(
              distances,
              [](Plain& layer) {
                const auto other = DisentangledOptions(40).position_buckets(8);  // as many rows
                layer.disentangled_attn = layer.replace_module(
                    "self_attn", DisentangledAttention(DisentangledAttentionOptions(16, 2, other)));
              }),
          "layers.0.self_attn: max_relative_positions must be 8, as in the rest of the model. Got "
          "40");
  const auto scaled = [](Plain& layer) {
    layer.layer_scale1 =
        layer.register_module("layer_scale1", LayerScale(LayerScaleOptions(16).init(0.3)));
  };
  const auto normed = [](Plain& layer) {
    layer.post_norm1 = layer.register_module("post_norm1", TransformerNorm(16));
  };
  const auto keys_of_distances = small().transformer_xl(TransformerXLOptions(SinusoidOptions(16)));
  for (const LayerOptions& own :
       {distances, keys_of_distances, small().mixing(Mixing::Convolution)}) {
    refused(one_layer<Plain>(own, scaled), "layers.0.layer_scale1 must be an empty holder");
    refused(one_layer<Plain>(own, normed), "layers.0.post_norm1 must be an empty holder");
  }
  refused(one_layer<Plain>(small(), normed),
          "layers.0.post_norm1 must be an empty holder, as the options say. Got posenc::"
          "TransformerNorm(d_model=16)");
  refused(one_layer<Plain>(distances, [](Plain& layer) { layer.options.mixing(Mixing::Fourier); }),
          "[freeze] layers.0: mixing must be its default with disentangled. Got another");
  using Bottleneck = BottleneckEncoderLayerImpl;
  const auto narrow = small().bottleneck(BottleneckOptions(16));
  refused(one_layer<Bottleneck>(narrow,
                                [](Bottleneck& layer) {
                                  layer.self_attn = layer.replace_module(
                                      "self_attn",
                                      MultiheadAttention(MultiheadAttentionOptions(16, 2).relative(
                                          relative::Buckets{})));
                                }),
          "layers.0.self_attn must be without a relative position bias. Got one");
  refused(one_layer<Plain>(small().mixing(Mixing::Convolution),
                           [](Plain& layer) { layer.conv_attn->options.conv_kernel_size(99); }),
          "layers.0.conv_attn.depthwise_weight must be [16, 99]. Got");
}

}  // namespace
}  // namespace posenc::testing
