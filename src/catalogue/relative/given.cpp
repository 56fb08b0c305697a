#include "catalogue/relative/given.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/clone.h>
#include <ATen/ops/stack.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <string_view>
#include <type_traits>
#include <variant>

#include "positions/relative/broadcasts.h"
#include "positions/relative/limits.h"

namespace posenc::relative {
namespace {

// As LibTorch allocates it: the bits of a product may depend on where its factors begin, and
// tensors of a file begin anywhere.
at::Tensor aligned(const at::Tensor& x) {
  constexpr uintptr_t kAlignment = 64;
  const bool begins_right =
      !x.is_cpu() || reinterpret_cast<uintptr_t>(x.const_data_ptr()) % kAlignment == 0;
  return begins_right ? x : x.clone();
}

// LibTorch folds a product with a tensor that needs a gradient in another way, also while it
// records none, and the bits differ. The parameters of a system's class need one.
at::Tensor as_parameter(const at::Tensor& weight) {
  const bool is_other =
      at::GradMode::is_enabled() || weight.requires_grad() || !weight.is_floating_point();
  return is_other ? weight : weight.detach().set_requires_grad(true);
}

// "true", "7", "[7, 4]"
std::string text_of(const RelativeSetting& value) {
  std::ostringstream out;
  const auto list = [&out](const auto& values) {
    out << '[';
    for (std::size_t i = 0; i < values.size(); ++i) out << (i > 0 ? ", " : "") << values[i];
    out << ']';
  };
  std::visit(
      [&](const auto& v) {
        if constexpr (requires { v.begin(); } &&
                      !std::is_same_v<std::decay_t<decltype(v)>, std::string>) {
          list(v);
        } else {
          out << std::boolalpha << v;
        }
      },
      value);
  return out.str();
}

}  // namespace

const RelativeSetting& Given::setting(const char* name) const {
  const auto found = inputs_.settings.find(name);
  TORCH_CHECK_VALUE(found != inputs_.settings.end(), "[", preset_, "] the settings must have `",
                    name, "`");
  return found->second;
}

void Given::wrong(const char* name, const char* what) const {
  TORCH_CHECK_VALUE(false, "[", preset_, "] `", name, "` must be ", what, ". Got ",
                    text_of(setting(name)));
  std::abort();  // the check throws
}

void Given::require(bool kept, const std::string& what, const std::string& got) const {
  TORCH_CHECK_VALUE(kept, "[", preset_, "] ", what, ". Got ", got);
}

void Given::require_dtype(const char* name, const at::Tensor& given) const {
  TORCH_CHECK_TYPE(given.scalar_type() == dtype(), "[", preset_, "] `", name,
                   "` must have the dtype of the settings, ", text("dtype"), ". Got ",
                   given.scalar_type());
}

bool Given::flag(const char* name) const {
  if (const bool* value = std::get_if<bool>(&setting(name))) return *value;
  wrong(name, "true or false");
}

int64_t Given::integer(const char* name, int64_t least) const {
  const int64_t* value = std::get_if<int64_t>(&setting(name));
  if (!value) wrong(name, "an integer");
  require(*value >= least && *value <= kMostPositions,
          std::string("`") + name + "` must be at least " + std::to_string(least) +
              ", and at most " + std::to_string(kMostPositions),
          std::to_string(*value));
  return *value;
}

double Given::real(const char* name) const {
  if (const double* value = std::get_if<double>(&setting(name))) return *value;
  if (const int64_t* value = std::get_if<int64_t>(&setting(name)))
    return static_cast<double>(*value);
  wrong(name, "a number");
}

std::string Given::text(const char* name) const {
  if (const std::string* value = std::get_if<std::string>(&setting(name))) return *value;
  wrong(name, "a word");
}

bool Given::lists(const char* name, std::string_view word) const {
  if (const auto* words = std::get_if<std::vector<std::string>>(&setting(name)))
    return std::find(words->begin(), words->end(), word) != words->end();
  if (const auto* numbers = std::get_if<std::vector<int64_t>>(&setting(name));
      numbers && numbers->empty())
    return false;
  wrong(name, "a list of words");
}

int64_t Given::words(const char* name) const {
  const auto* words = std::get_if<std::vector<std::string>>(&setting(name));
  return words ? static_cast<int64_t>(words->size()) : 0;
}

Grid Given::grid(const char* name, int64_t least) const {
  Grid grid;
  if (const int64_t* side = std::get_if<int64_t>(&setting(name))) {
    grid = {*side, *side};
  } else if (const auto* sides = std::get_if<std::vector<int64_t>>(&setting(name));
             sides && sides->size() == 2) {
    grid = {(*sides)[0], (*sides)[1]};
  } else {
    wrong(name, "an integer, or height and width");
  }
  require(grid.height >= least && grid.width >= least && grid.height <= kMostPatches &&
              grid.width <= kMostPatches / std::max<int64_t>(grid.height, 1),
          std::string("`") + name + "` must be at least " + std::to_string(least) +
              ", of at most " + std::to_string(kMostPatches) + " patches",
          text_of(setting(name)));
  return grid;
}

at::ScalarType Given::dtype() const {
  const std::string name = text("dtype");
  if (name == "float32") return at::kFloat;
  if (name == "bfloat16") return at::kBFloat16;
  if (name == "float16") return at::kHalf;
  wrong("dtype", "float32, bfloat16 or float16");
}

at::Tensor Given::tensor(const char* name, at::IntArrayRef sizes) const {
  const at::Tensor given = of_rank(name, static_cast<int64_t>(sizes.size()));
  const bool fits =
      std::equal(sizes.begin(), sizes.end(), given.sizes().begin(),
                 [](int64_t expected, int64_t got) { return expected < 0 || expected == got; });
  std::ostringstream shape;
  for (const int64_t size : sizes) {
    shape << (shape.tellp() > 0 ? ", " : "(");
    size < 0 ? shape << '*' : shape << size;
  }
  TORCH_CHECK_VALUE(fits, "[", preset_, "] `", name, "` must be ", shape.str(), "). Got ",
                    given.sizes());
  return given;
}

at::Tensor Given::of_rank(const char* name, int64_t rank) const {
  const auto found = inputs_.tensors.find(name);
  TORCH_CHECK_VALUE(found != inputs_.tensors.end(), "[", preset_, "] the tensors must have `", name,
                    "`");
  const at::Tensor& given = found->second;
  TORCH_CHECK_VALUE(given.dim() == rank, "[", preset_, "] `", name, "` must have ", rank,
                    " axes. Got ", given.sizes());
  return std::string_view(name).substr(0, 2) == "w." ? as_parameter(aligned(given))
                                                     : aligned(given);
}

at::Tensor Given::added(const char* name, at::IntArrayRef scores) const {
  const at::Tensor given = of_rank(name, static_cast<int64_t>(scores.size()));
  TORCH_CHECK_VALUE(broadcasts_to(given.sizes(), scores), "[", preset_, "] `", name,
                    "` must fit the scores, ", scores, ". Got ", given.sizes());
  return given;
}

at::Tensor Given::integers(const char* name, at::IntArrayRef sizes) const {
  const at::Tensor given = tensor(name, sizes);
  TORCH_CHECK_TYPE(!given.is_floating_point() && !given.is_complex(), "[", preset_, "] `", name,
                   "` must be integers. Got ", given.scalar_type());
  return given.scalar_type() == at::kBool ? given : given.to(at::kLong);
}

namespace {

// In the memory order of a projection's output, (B, L, H, D): products of other layouts add their
// terms in another order.
at::Tensor as_projected(const at::Tensor& x) {
  return x.transpose(1, 2).contiguous().transpose(1, 2);
}

}  // namespace

QueriesAndKeys queries_and_keys(const Given& given) {
  const at::Tensor q = given.of_rank("q", 4);
  const at::Tensor k = given.tensor("k", {q.size(0), q.size(1), kAny, q.size(3)});
  given.require_dtype("q", q);
  given.require_dtype("k", k);
  return {as_projected(q), as_projected(k), q.size(0), q.size(1), q.size(2), k.size(2), q.size(3)};
}

QueriesAndKeys fused_queries_and_keys(const Given& given, Fused fused) {
  QueriesAndKeys input = queries_and_keys(given);
  given.require(input.queries == input.keys, "`q` and `k` must have the same length",
                std::to_string(input.queries) + " and " + std::to_string(input.keys));
  const at::Tensor q = input.q.transpose(1, 2), k = input.k.transpose(1, 2);
  const int64_t axis = fused == Fused::Parts ? 2 : 3;
  const at::Tensor projected = at::stack({q, k, k}, axis);
  input.q = projected.select(axis, 0).transpose(1, 2);
  input.k = projected.select(axis, 1).transpose(1, 2);
  return input;
}

at::Tensor mask_if_masked(const Given& given, const QueriesAndKeys& input) {
  if (!given.flag("masked")) return {};
  return given.added("mask", {input.batch, input.heads, input.queries, input.keys});
}

}  // namespace posenc::relative
