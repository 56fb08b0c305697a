#include "identify/rotary/view.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/imag.h>
#include <ATen/ops/real.h>

#include "identify/table_view.h"

namespace posenc::identification {
namespace {

constexpr int64_t kFewestPositions = 3, kFewestPairs = 2;
constexpr double kLeastAmplitude = 0.05, kMostAmplitude = 20.0;  // of the factor of cos and sin

bool is_cos_of_zero(const at::Tensor& row) {
  const double first = row.select(0, 0).item<double>();
  return first > kLeastAmplitude && first < kMostAmplitude && row.eq(first).all().item<bool>();
}

bool is_sin_of_zero(const at::Tensor& row) { return row.eq(0).all().item<bool>(); }

// (L, W) as (L, n), without the repeated entries of a row; sets the layout.
at::Tensor once(const at::Tensor& t, RotaryView& view) {
  const int64_t width = t.size(1), n = width / 2;
  view.layout = "single";
  if (width % 2 == 1) return t;
  if (at::equal(t.slice(1, 0, n), t.slice(1, n))) {
    view.layout = "halves";
    return t.slice(1, 0, n);
  }
  if (!at::equal(t.slice(1, 0, width, 2), t.slice(1, 1, width, 2))) return t;
  view.layout = "pairs";
  return t.slice(1, 0, width, 2);
}

// Both cos and sin: one begins with ones and the other with zeros.
bool take_both(const at::Tensor& cos, const at::Tensor& sin, RotaryView& view) {
  if (!is_cos_of_zero(cos[0]) || !is_sin_of_zero(sin[0])) return false;
  view.cos = cos;
  view.sin = sin;
  return true;
}

bool take_table(const at::Tensor& t, bool by_name, RotaryView& view) {
  const at::Tensor first = t[0];
  if (is_cos_of_zero(first)) {
    view.holds = "cos";
    view.cos = once(t, view);
    return true;
  }
  if (is_sin_of_zero(first)) {
    view.holds = "sin";
    view.sin = once(t, view);
    return true;
  }
  if (!by_name || t.size(1) % 2 == 1) return false;
  const at::Tensor left = t.slice(1, 0, t.size(1) / 2), right = t.slice(1, t.size(1) / 2);
  view.layout = "single";
  view.holds = "cos_sin";
  if (take_both(left, right, view)) return true;
  view.holds = "sin_cos";
  return take_both(right, left, view);
}

bool take_stacked(const at::Tensor& t, RotaryView& view) {
  if (t.size(2) == 2 && take_both(t.select(2, 0), t.select(2, 1), view)) {
    view.holds = "cos_sin";
    view.layout = "single";
    view.may_be_polar = true;
    return true;
  }
  if (t.size(0) != 2 || !take_both(t[0], t[1], view)) return false;
  view.holds = "cos_sin";
  view.cos = once(view.cos, view);
  const std::string layout = view.layout;
  view.sin = once(view.sin, view);
  return view.layout == layout;
}

bool take_frequencies(const at::Tensor& t, RotaryView& view) {
  const at::Tensor f = t.to(at::kDouble);
  const bool falls = (f.slice(0, 1) <= f.slice(0, 0, -1)).all().item<bool>();
  if (!falls || !(f[0].item<double>() <= 1.0) || !(f[-1].item<double>() >= 0.0)) return false;
  if (f[0].item<double>() <= f[-1].item<double>()) return false;
  view.holds = "inv_freq";
  view.inv_freq = t.contiguous();
  return true;
}

bool is_batch(const at::Tensor& t) {
  return at::equal(t.select(0, 0).unsqueeze(0).expand_as(t), t);
}

// Whether all values can be those of a cosine or sine.
bool is_bounded(const at::Tensor& t) {
  const double most = kMostAmplitude;
  return t.abs().max().item<double>() <= most && t.isfinite().all().item<bool>();
}

}  // namespace

std::optional<RotaryView> rotary_view(const at::Tensor& tensor, bool by_name) {
  RotaryView view;
  at::Tensor t = tensor.detach().squeeze();
  if (t.dim() < 1 || t.dim() > 3 || t.numel() == 0) return std::nullopt;
  if (t.is_complex()) {
    if (t.dim() != 2 || t.size(0) < kFewestPositions || t.size(1) < kFewestPairs)
      return std::nullopt;
    t = t.cpu().resolve_conj();
    view.holds = "freqs_cis";
    view.layout = "complex";
    view.may_be_polar = true;
    if (!take_both(at::real(t).contiguous(), at::imag(t).contiguous(), view)) return std::nullopt;
    return view;
  }
  if (t.dim() == 1) {
    if (!by_name || t.size(0) < kFewestPairs) return std::nullopt;
    t = to_narrowest_dtype(t.cpu());
    return take_frequencies(t, view) ? std::optional(view) : std::nullopt;
  }
  // The first two values are checked before anything larger is copied to the CPU.
  const at::Tensor head = t.select(0, 0).reshape({-1}).slice(0, 0, 2).cpu();
  if (t.size(0) < (t.dim() == 3 ? 1 : kFewestPositions) || !is_bounded(head)) return std::nullopt;
  t = t.cpu();
  if (t.dim() == 3 && t.size(2) != 2 && t.size(0) != 2) {
    if (!is_batch(t)) return std::nullopt;
    t = t[0];
  } else if (t.dim() == 3 && t.size(1) >= kFewestPositions && is_batch(t)) {
    t = t[0];
  }
  if (t.size(0) < 2 || t.size(1) < kFewestPairs || !is_bounded(t)) return std::nullopt;
  t = to_narrowest_dtype(t);
  const bool taken = t.dim() == 2 ? t.size(0) >= kFewestPositions && take_table(t, by_name, view)
                                  : take_stacked(t, view);
  if (!taken || view.length() < kFewestPositions) return std::nullopt;
  return view;
}

}  // namespace posenc::identification
