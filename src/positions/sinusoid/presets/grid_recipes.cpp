// The presets of grids of two and three axes, and of points: each recipe with its parameters and
// the systems that use it.

#include <numbers>

#include "positions/sinusoid/presets/recipe.h"

namespace posenc::recipes {
namespace {

using namespace sinusoid;

// float64, 1 / b ** (i / (C / 2)), one block of [sin, cos] per axis, the WIDTH first: as in MAE
Options mae_axes() {
  return half_index()
      .divisor(Divisor::HalfChannels)
      .arithmetic(Arithmetic::Float64)
      .channel_axes({1, 0});
}

// v / b ** (2 (j / 2) / C), one interleaved block per axis: as in DETR
Options detr_axes() { return quotient().index(Index::Paired); }

// One more axis of the grid.
void add_axis(Options& o, const Value& extent) {
  std::vector<int64_t> grid = o.grid();
  grid.push_back(extent.extent());
  o.grid(grid);
}

Parameters height() { return {{{"height", "", "cells down"}, add_axis}}; }
Parameters width() { return {{{"width", "", "cells across"}, add_axis}}; }
Parameters depth() { return {{{"depth", "", "cells deep"}, add_axis}}; }
Parameters grid() { return height() + width(); }
Parameters box() { return depth() + grid(); }

void width_first(Options& o) { o.grid({o.grid().at(1), o.grid().at(0)}); }

Parameters square() {
  return {{{"height", "", "cells on each side"}, [](Options& o, const Value& v) {
             add_axis(o, v);
             add_axis(o, v);
           }}};
}

Parameters cls_token() {
  return {{{"cls_token", "0", "1: begins with a row of zeros"},
           [](Options& o, const Value& v) { o.cls_row(v.flag()); }}};
}

Parameters normalize() {
  return {{{"normalize", "0", "1: scales coordinates to 2 pi"}, [](Options& o, const Value& v) {
             o.axis_values(v.flag() ? AxisValues::Normalized : AxisValues::OneBased);
           }}};
}

Parameters scaling() {
  return {{{"base_size", "16", "grid size used in training"},
           [](Options& o, const Value& v) { o.base_size(v.positive()); }},
          {{"interpolation_scale", "1", "divides the coordinates"},
           [](Options& o, const Value& v) { o.interpolation_scale(v.positive()); }}};
}

Parameters timm_order() {
  return {{{"interleave_sin_cos", "0", "1: one block per axis"},
           [](Options& o, const Value& v) {
             o.axis_depth(v.flag() ? AxisDepth::Outer : AxisDepth::Middle);
           }},
          {{"reverse_coord", "0", "1: width first"}, [](Options& o, const Value& v) {
             if (v.flag()) width_first(o);
           }}};
}

Parameters loftr_bug() {
  return {{{"temp_bug_fix", "1", "0: reproduces the bug of the release"},
           [](Options& o, const Value& v) {
             o.frequency(v.flag() ? Frequency::Exp : Frequency::ExpFloored);
           }}};
}

Parameters nerf_frequencies() {
  return {
      {{"multires", "10", "number of frequencies, (dim - 3) / 6"}, [](Options& o, const Value& v) {
         if (o.dim() != 3 + 6 * v.extent()) v.refuse("(dim - 3) / 6");
       }}};
}

Parameters perceiver_frequencies() {
  return {{{"num_bands", "64", "number of frequencies, (dim - 1) / 2"},
           [](Options& o, const Value& v) {
             if (o.dim() != 1 + 2 * v.extent()) v.refuse("(dim - 1) / 2");
           }},
          {{"max_resolution", "224", "twice the last frequency"},
           [](Options& o, const Value& v) { o.max_frequency(v.positive() / 2); }}};
}

}  // namespace

std::vector<Family> grid_recipes() {
  const double turn = 2 * std::numbers::pi;
  return {
      {{"mae", mae_axes(), square() + cls_token()},
       {{"mae_2d",
         "facebookresearch/mae@efb2a806, util/pos_embed.py: get_2d_sincos_pos_embed",
         "frozen Parameter pos_embed (1,N+1,D)",
         {"granite_docling: GraniteDoclingPositionEmbedding (cls_token=0)"}}}},
      {{"vit_mae", mae_axes().cls_row(true), square()},
       {{"vit_mae", "transformers 5.23.0, ViTMAEEmbeddings.initialize_weights",
         "frozen Parameter position_embeddings (1,N+1,D), saved"}}},
      {{"aimv2", mae_axes(), grid()},
       {{"aimv2_2d", "transformers 5.23.0, Aimv2VisionEmbeddings", "none"}}},
      {{"diffusers_2d", mae_axes().axis_values(AxisValues::Scaled), grid() + scaling()},
       {{"diffusers_2d_sincos", "diffusers 0.42.1, get_2d_sincos_pos_embed",
         "PatchEmbed buffer pos_embed"}}},
      {{"detr", detr_axes(), grid() + normalize()},
       {{"detr_2d",
         "facebookresearch/detr@29901c51, models/position_encoding.py: PositionEmbeddingSine",
         "none"},
        {"hf_detr_2d",
         "transformers 5.23.0, DetrSinePositionEmbedding",
         "none",
         {"conditional_detr: ConditionalDetrSinePositionEmbedding",
          "edgetam: EdgeTamSinePositionEmbedding",
          "edgetam_video: EdgeTamVideoPositionEmbeddingSine",
          "mask2former: Mask2FormerSinePositionEmbedding",
          "oneformer: OneFormerSinePositionEmbedding", "sam2: Sam2SinePositionEmbedding",
          "sam2_video: Sam2VideoPositionEmbeddingSine", "sam3: Sam3SinePositionEmbedding",
          "sam3_lite_text: Sam3LiteTextSinePositionEmbedding",
          "sam3_tracker_video: Sam3TrackerVideoPositionEmbeddingSine",
          "table_transformer: TableTransformerSinePositionEmbedding"}},
        {"maskformer_2d", "transformers 5.23.0, MaskFormerSinePositionEmbedding", "none"},
        {"mask2former_2d",
         "facebookresearch/Mask2Former@9b0651c6, "
         "mask2former/modeling/transformer_decoder/position_encoding.py: PositionEmbeddingSine",
         "none"},
        {"mmdet_2d", "mmdet 3.3.0, SinePositionalEncoding", "none"},
        {"sam2_2d", "sam2 1.1.0, PositionEmbeddingSine", "none"}}},
      {{"deformable_detr", detr_axes().axis_values(AxisValues::Centered), grid()},
       {{"deformable_detr_2d", "transformers 5.23.0, DeformableDetrSinePositionEmbedding",
         "none"}}},
      {{"dab_detr",
        detr_axes()
            .frequency(Frequency::PowerOfProduct)
            .index(Index::PairNumber)
            .axis_values(AxisValues::Normalized),
        grid() + base("temperature", "20")},
       {{"dab_detr_2d", "transformers 5.23.0, DabDetrSinePositionEmbedding", "none"}}},
      {{"grounding_dino", detr_axes().axis_values(AxisValues::Normalized),
        grid() + base("temperature", "20")},
       {{"grounding_dino_2d",
         "transformers 5.23.0, GroundingDinoSinePositionEmbedding",
         "none",
         {"mm_grounding_dino: MMGroundingDinoSinePositionEmbedding"}}}},
      {{"conditional_detr", detr_axes().coordinates({{true, turn}, {false, turn}}),
        line("0", "0.0009765625", "x")},
       {{"conditional_detr_points",
         "transformers 5.23.0, encode_sinusoidal_position_embedding",
         "none",
         {"dab_detr: encode_sinusoidal_position_embedding",
          "deformable_detr: DeformableDetrModel.get_proposal_pos_embed (first two coordinates)",
          "grounding_dino: encode_sinusoidal_position_embedding",
          "lw_detr: encode_sinusoidal_position_embedding",
          "mm_grounding_dino: encode_sinusoidal_position_embedding",
          "rf_detr: encode_sinusoidal_position_embedding",
          "sam3: Sam3SinePositionEmbedding.encode_boxes (first two coordinates)",
          "sam3: Sam3SinePositionEmbedding.encode_1d_positions",
          "sam3_lite_text: Sam3LiteTextSinePositionEmbedding.encode_boxes (first two coordinates)",
          "sam3_lite_text: Sam3LiteTextSinePositionEmbedding.encode_1d_positions"}}}},
      {{"timm", half_index(), grid() + base("temperature") + timm_order()},
       {{"timm_2d", "timm 1.0.31, build_sincos2d_pos_embed",
         "persistent buffer or none (per model)"}}},
      {{"rt_detr", half_index().arithmetic(Arithmetic::Float64), grid() + base("temperature")},
       {{"rt_detr_2d",
         "transformers 5.23.0, RTDetrSinePositionEmbedding",
         "none (lru cache)",
         {"d_fine: DFineSinePositionEmbedding", "deimv2: Deimv2SinePositionEmbedding",
          "pp_doclayout_v2: PPDocLayoutV2SinePositionEmbedding",
          "pp_doclayout_v3: PPDocLayoutV3SinePositionEmbedding",
          "pp_doclayout_v4: PPDocLayoutV4SinePositionEmbedding",
          "rt_detr_v2: RTDetrV2SinePositionEmbedding"}}}},
      {{"rt_detr_v4", half_index(), grid() + base("temperature"), width_first},
       {{"rt_detr_2d_v4",
         "transformers 4.46.3, RTDetrHybridEncoder.build_2d_sincos_position_embedding",
         "none",
         {"omdet_turbo: OmDetTurboHybridEncoder.build_2d_sincos_position_embedding"}}}},
      {{"moco_v3", half_index().cls_row(true), grid(), width_first},
       {{"moco_v3_2d",
         "facebookresearch/moco-v3@c349e6e2, vits.py: "
         "VisionTransformerMoCo.build_2d_sincos_position_embedding",
         "frozen Parameter pos_embed (1,N+1,D)"}}},
      {{"monai", half_index().channel_axes({1, 0}), grid()},
       {{"monai_2d", "monai 1.6.1, build_sincos_position_embedding", "frozen Parameter"}}},
      {{"simple_vit_2d", half_index().shift(1).channel_axes({1, 0}), grid() + base("temperature")},
       {{"simple_vit_2d", "vit-pytorch 1.26.11, posemb_sincos_2d", "none (plain attribute)"}}},
      {{"loftr",
        Options(0)
            .axis_values(AxisValues::OneBased)
            .axis_depth(AxisDepth::Middle)
            .channel_axes({1, 0}),
        grid() + loftr_bug()},
       {{"loftr_2d", "kornia 0.9.0, PositionEncodingSine",
         "buffer pe (1,C,256,256) persistent=False"}}},
      {{"positional_encodings_2d", even_axes(), grid()},
       {{"positional_encodings_2d", "positional-encodings 6.0.3, PositionalEncoding2D",
         "persistent buffer inv_freq"}}},
      {{"diffusers_3d", mae_axes().channel_axes({0, 2, 1}).axis_channels(AxisChannels::QuarterRest),
        box()},
       {{"diffusers_3d_sincos", "diffusers 0.42.1, get_3d_sincos_pos_embed",
         "buffer pos_embedding (CogVideoX)"}}},
      {{"positional_encodings_3d", even_axes(), box()},
       {{"positional_encodings_3d", "positional-encodings 6.0.3, PositionalEncoding3D",
         "persistent buffer inv_freq"}}},
      {{"simple_vit_3d",
        half_index()
            .shift(1)
            .channel_axes({2, 1, 0})
            .axis_channels(AxisChannels::FloorEven)
            .odd_dim(OddDim::ZeroColumn),
        box()},
       {{"simple_vit_3d", "vit-pytorch 1.26.11, posemb_sincos_3d", "none"}}},
      {{"nerf",
        Options(0)
            .frequency(Frequency::PowersOfTwo)
            .axis_depth(AxisDepth::Inner)
            .raw_first(true)
            .coordinates({{false, 1.0}, {false, 0.5}, {false, -1.0}}),
        nerf_frequencies() + line("-1", "0.0078125", "x")},
       {{"nerf", "yenchenlin/nerf-pytorch@63a5a630, run_nerf_helpers.py: Embedder", "none"}}},
      {{"perceiver",
        Options(0)
            .frequency(Frequency::Linear)
            .angle_scale(std::numbers::pi)
            .layout(Layout::Halves)
            .raw_first(true),
        perceiver_frequencies() + line("-1", "0.0078125")},
       {{"perceiver_fourier", "transformers 5.23.0, generate_fourier_features", "none"}}},
  };
}

}  // namespace posenc::recipes
