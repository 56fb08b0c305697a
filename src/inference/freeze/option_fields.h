#pragma once

// The options of every struct that a module of a freezable stack or Transformer holds; lint
// compares each list with the struct. Those of encoders and heads are in models/options/holders.h.
//
// posenc-budget: a list for each struct

#include <torch/nn/options/batchnorm.h>
#include <torch/nn/options/conv.h>
#include <torch/nn/options/embedding.h>

#include "core/fields.h"
#include "posenc/positions/nn/document_position_bias.h"
#include "posenc/positions/nn/encoder_embeddings_options.h"
#include "posenc/positions/nn/vision_embeddings_options.h"
#include "posenc/transformer/layers/window_encoder.h"
#include "posenc/transformer/transformer.h"

template <>
struct posenc::fields::Equal<posenc::Scale> {
  static bool of(const Scale& a, const Scale& b) {
    return a.is_none() == b.is_none() && a.is_sqrt_dim() == b.is_sqrt_dim() &&
           a.factor(1) == b.factor(1);
  }
};
template <std::size_t D>
struct posenc::fields::Equal<torch::ExpandingArray<D>> {
  static bool of(const torch::ExpandingArray<D>& a, const torch::ExpandingArray<D>& b) {
    return *a == *b;
  }
};

POSENC_MEMBERS(posenc::sinusoid::Coordinate, complement, factor)
POSENC_MEMBERS(posenc::rotary::Linear, factor)
POSENC_MEMBERS(posenc::rotary::Proportional, proportion, factor)
POSENC_MEMBERS(posenc::rotary::Dynamic, factor, max_position)
POSENC_MEMBERS(posenc::rotary::NtkAlpha, alpha)
POSENC_MEMBERS(posenc::rotary::Yarn, factor, original_max_position, beta_fast, beta_slow, truncate,
               attention_factor, mscale, mscale_all_dim)
POSENC_MEMBERS(posenc::rotary::LongRope, short_factor, long_factor, original_max_position, factor,
               attention_factor)
POSENC_MEMBERS(posenc::rotary::PhiMoe, short_factor, original_max_position, short_mscale,
               long_mscale)
POSENC_MEMBERS(posenc::rotary::Llama3, factor, low_freq_factor, high_freq_factor,
               original_max_position)
POSENC_MEMBERS(posenc::rotary::Grid, coordinates, width_first, zero_tokens, reference, offset,
               merge, learned_prefix)
POSENC_MEMBERS(posenc::relative::Buckets, num_buckets, max_distance, bidirectional, truncate_sum,
               spare_rows)
POSENC_MEMBERS(posenc::relative::SignedLog, buckets, max_position)
POSENC_MEMBERS(posenc::relative::Clamp, left, right, query_minus_key, absolute)
POSENC_MEMBERS(posenc::relative::Shift, origin)
POSENC_MEMBERS(posenc::relative::Alibi, slopes, bias_max, counts_tokens)
POSENC_MEMBERS(posenc::relative::Grid, height, width)

POSENC_FIELDS(posenc::SinusoidOptions,
              (dim, frequency, index, divisor, shift, divisor_at_least_one, base, max_frequency,
               min_period, power_shape, arithmetic, precision, phase, angle_scale, angle_by_length,
               layout, cos_first, odd_dim, raw_first, position_range, start, step, zero_row,
               cls_row, grid, channel_axes, axis_depth, axis_values, axis_channels, base_size,
               interpolation_scale, coordinates, post),
              ())
POSENC_FIELDS(posenc::RotaryOptions,
              (dim, pairing, base, scaling, frequency, angle_type, precision, planes, sections,
               axes, axis_dims, axis_bases, last_plane_first, rest_first, position_scale,
               angle_divisor, modulated, grid, cos_layout, cos_type, arithmetic, part, rotary_heads,
               applied_to, rotary_value, xpos_scale_base, xpos_middle, reversed, head_axis),
              ())
POSENC_FIELDS(posenc::RotaryEmbeddingOptions,
              (rotary, head_axis, length_rule, length, learned_scale),
              (persistent, casts_frequencies, cache_rows))
POSENC_FIELDS(posenc::MultiheadAttentionOptions,
              (embed_dim, num_heads, num_kv_heads, head_dim, qk_norm, qk_norm_eps, scale, rotary,
               relative, bias, query_bias, key_bias, value_bias, out_bias, kdim, vdim, batch_first),
              (dropout, python_dropout_order))
POSENC_FIELDS(posenc::ConvolutionalAttentionOptions, (embed_dim, num_heads, conv_kernel_size),
              (dropout))
POSENC_FIELDS(posenc::DisentangledOptions,
              (max_relative_positions, position_buckets, relative_attention, content_to_position,
               position_to_content, share_att_key, position_key_bias, norm_relative_embeddings,
               conv_kernel_size, conv_groups, conv_act),
              ())
POSENC_FIELDS(posenc::DisentangledAttentionOptions,
              (embed_dim, num_heads, positions, scale, key_bias), (dropout, position_dropout))
POSENC_FIELDS(posenc::TransformerXLOptions,
              (sinusoid, clamp_len, bi_data, segments, mask_embedding), ())
POSENC_FIELDS(posenc::TransformerXLAttentionOptions,
              (embed_dim, num_heads, positions, scale, bias, out_bias), (dropout))
POSENC_FIELDS(posenc::ConformerOptions, (conv_kernel_size), (conv_dropout))
POSENC_FIELDS(posenc::BottleneckOptions,
              (intra_bottleneck_size, use_bottleneck, use_bottleneck_attention,
               key_query_shared_bottleneck, num_feedforward_networks, last_norm_eps),
              ())
POSENC_FIELDS(posenc::LayerNormOptions, (d_model, eps, bias), ())
POSENC_FIELDS(posenc::TransformerNormOptions, (d_model, kind, eps, bias), ())
POSENC_FIELDS(posenc::LayerScaleOptions, (d_model), (init))
POSENC_FIELDS(posenc::RelativePositionBiasOptions, (index, num_heads), ())
POSENC_FIELDS(posenc::GridPositionBiasOptions, (grid, num_heads), ())
POSENC_FIELDS(posenc::DocumentPositionBiasOptions, (num_heads, places, boxes, scale), ())
POSENC_FIELDS(posenc::TransformerLayerOptions,
              (d_model, num_heads, d_ff, mixing, conv_kernel_size, bottleneck, disentangled,
               conformer, transformer_xl, feed_forward, activation, norm_first, first_norm,
               post_norms, norm_kind, layer_norm_eps, bias, qkv_bias, query_bias, key_bias,
               value_bias, out_bias, linear1_bias, linear2_bias, norm_bias, batch_first,
               num_kv_heads, head_dim, relative, grid_bias, rotary, qk_norm, attention_scale,
               window),
              (dropout, dropouts, layer_scale, python_dropout_order))
POSENC_FIELDS(posenc::TransformerEncoderOptions,
              (layer, num_layers, norm, final_norm_eps, relative, alibi, order, layers, grid_bias),
              (layer_dropout))
POSENC_FIELDS(posenc::TransformerDecoderOptions,
              (layer, num_layers, norm, final_norm_eps, relative, alibi), ())
POSENC_FIELDS(posenc::WindowOptions,
              (window, shift, positions, pretrained_window, needs_room, res_post_norm),
              (path_of_attention))
POSENC_FIELDS(posenc::WindowAttentionOptions, (embed_dim, num_heads, windows, qkv_bias, key_bias),
              (dropout))
POSENC_FIELDS(posenc::WindowEncoderLayerOptions, (layer, windows), ())
POSENC_FIELDS(posenc::PatchMergingOptions, (d_model, norm_first, layer_norm_eps), ())
POSENC_FIELDS(posenc::ConvolutionNeckOptions, (d_model, channels, layer_norm_eps), ())
POSENC_FIELDS(posenc::WindowStageOptions, (layers, downsample), ())
POSENC_FIELDS(posenc::WindowEncoderOptions, (stages, norm, neck, records_layers), ())
POSENC_FIELDS(posenc::PositionalEncodingOptions,
              (max_len, table_source, batch_first, grow, d_model, sinusoid), (dropout))
POSENC_FIELDS(posenc::LearnedPositionEmbeddingOptions,
              (num_embeddings, embedding_dim, offset, padding_idx), ())
POSENC_FIELDS(posenc::TokenAndPositionEmbeddingOptions,
              (vocab_size, d_model, scale, padding_idx, max_len, table_source, batch_first, grow,
               sinusoid, position_ids, learned_positions, position_offset, norm, layer_norm_eps),
              (embedding_init, sparse, dropout, reuse_output))
POSENC_FIELDS(posenc::EncoderEmbeddingsOptions,
              (types_from_tokens, order, norm, layer_norm_eps, projection, trigram_input, no_norm,
               stepwise_norm, scale, scale_rounding, padding_idx, position_padding_idx,
               type_padding_idx, vocab_size, d_model, embedding_dim, position_rows, position_ids,
               position_offset, first_position, sinusoid, type_vocab_size, task_type_vocab_size,
               box_positions, coordinate_size, shape_size, norm_bias, projection_bias),
              (dropout, train_sinusoid, names))
POSENC_FIELDS(posenc::VisionEmbeddingsOptions,
              (image_height, image_width, patch_height, patch_width, d_model, num_channels,
               patch_bias, cast_pixels, whole_patches, pad_patches, own_size, class_tokens,
               class_token_dim, distillation_token, register_tokens, mask_token, mask_token_dim,
               mask_rule, position_table, position_table_dim, position_rows, sinusoid, resize,
               resize_always, mask_ratio, norm, patch_norm, layer_norm_eps),
              (dropout, initializer_range, names))
POSENC_FIELDS(posenc::TransformerOptions,
              (src_vocab, tgt_vocab, d_model, num_heads, num_encoder_layers, num_decoder_layers,
               d_ff, decoder_num_heads, decoder_d_ff, max_len, tie, scale, decoder_scale,
               padding_idx, position_ids, learned_positions, position_offset, embedding_norm,
               decoder_embedding_norm, sinusoid, head_dim, attention_scale, relative,
               decoder_relative, relative_in_each_layer, alibi, feed_forward, activation,
               norm_first, final_norm, norm_kind, layer_norm_eps, bias, output_bias, output_scale),
              (dropout, dropouts, embedding_init, python_dropout_order))

POSENC_FIELDS(torch::nn::EmbeddingOptions,
              (num_embeddings, embedding_dim, padding_idx, max_norm, norm_type, scale_grad_by_freq,
               sparse),
              (_weight))
POSENC_FIELDS(torch::nn::BatchNormOptions, (num_features, eps, affine, track_running_stats),
              (momentum))
POSENC_FIELDS(torch::nn::detail::ConvNdOptions<1>,
              (in_channels, out_channels, kernel_size, stride, padding, dilation, transposed,
               output_padding, groups, bias, padding_mode),
              ())
POSENC_FIELDS(torch::nn::detail::ConvNdOptions<2>,
              (in_channels, out_channels, kernel_size, stride, padding, dilation, transposed,
               output_padding, groups, bias, padding_mode),
              ())
