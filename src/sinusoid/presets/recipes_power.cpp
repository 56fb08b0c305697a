// Powers as frequencies, along one axis.

#include "sinusoid/presets/recipes.h"

namespace posenc::recipes {
namespace {

// 1 / b ** (i / D), i = 0, 2, 4 ...
Options reciprocal(int64_t dim) { return Options(dim).frequency(Frequency::PowerReciprocal); }

// p / b ** (2 (j / 2) / D) for every channel j, in float64: the family of Marian and XLM in
// Hugging Face's transformers
Options all_channels(int64_t dim) {
  return Options(dim)
      .frequency(Frequency::Power)
      .index(Index::Paired)
      .phase(Phase::Quotient)
      .arithmetic(Arithmetic::Float64)
      .odd_dim(OddDim::ExtraSin);
}

// 1 / b ** (i / n), i = 0 ... n - 1, halves
Options half_index(int64_t dim) {
  return reciprocal(dim).index(Index::Half).divisor(Divisor::Pairs).layout(Layout::Halves);
}

}  // namespace

Options notebook_001(int64_t dim, const Reader&) {
  return Options(dim).frequency(Frequency::Power).phase(Phase::Quotient);
}

Options notebook_002(int64_t dim, const Reader& p) {
  return notebook_001(dim, p).power_shape(PowerShape::Grid);
}

Options notebook_004(int64_t dim, const Reader&) { return reciprocal(dim); }

Options nemo_tts(int64_t dim, const Reader&) {
  return reciprocal(dim).layout(Layout::Halves).odd_dim(OddDim::Widen);
}

Options transformer_xl(int64_t dim, const Reader& p) { return nemo_tts(dim, p).rows(Rows::Down); }

Options xlnet(int64_t dim, const Reader& p) {
  const bool both = p.text("attn_type") == "bi";
  if (!both && p.text("attn_type") != "uni") p.refuse("attn_type", "bi or uni");
  return nemo_tts(dim, p).rows(both ? Rows::RelativeEven : Rows::DownFromLength);
}

Options marian(int64_t dim, const Reader&) { return all_channels(dim).layout(Layout::Halves); }

Options xlm(int64_t dim, const Reader&) { return all_channels(dim); }

Options cct(int64_t dim, const Reader&) {
  return all_channels(dim).arithmetic(Arithmetic::Float64Angle);
}

Options unpaired(int64_t dim, const Reader&) {
  return all_channels(dim).index(Index::Doubled).odd_dim(OddDim::Error);
}

Options diffusers_1d(int64_t dim, const Reader& p) {
  return half_index(dim)
      .divisor(Divisor::HalfChannels)
      .arithmetic(Arithmetic::Float64)
      .cos_first(p.flag("flip_sin_to_cos"))
      .start(p.real("start"))
      .step(p.real("step"));
}

Options ctrl(int64_t dim, const Reader&) {
  return reciprocal(dim).index(Index::Paired).layout(Layout::Halves).odd_dim(OddDim::ExtraSin);
}

Options x_transformers(int64_t dim, const Reader& p) {
  return half_index(dim)
      .frequency(Frequency::PowerNegative)
      .base(p.positive("theta"))
      .post(Post::MultiplyByRsqrtDim);
}

Options keras_sine(int64_t dim, const Reader& p) {
  return Options(dim)
      .frequency(Frequency::PowerInverseBase)
      .index(Index::Paired)
      .base(p.positive("max_wavelength"))
      .start(static_cast<double>(p.integer("start_index")))
      .odd_dim(OddDim::ExtraSin);
}

Options simple_vit_1d(int64_t dim, const Reader& p) {
  return half_index(dim).shift(1).base(p.positive("temperature"));
}

Options sam2_1d(int64_t dim, const Reader& p) {
  return Options(dim)
      .frequency(Frequency::Power)
      .phase(Phase::Quotient)
      .index(Index::PairedHalf)
      .divisor(Divisor::Pairs)
      .layout(Layout::Halves)
      .odd_dim(OddDim::Narrow)
      .start(p.real("start"))
      .step(p.real("step"));
}

Options positional_encodings_1d(int64_t dim, const Reader&) {
  return reciprocal(dim).axis_channels(AxisChannels::CeilEven).odd_dim(OddDim::Truncate);
}

Options positional_encodings_1d_halves(int64_t dim, const Reader& p) {
  return positional_encodings_1d(dim, p).layout(Layout::Halves);
}

}  // namespace posenc::recipes
