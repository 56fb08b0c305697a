// kernel_instructions SET KERNEL TIMES: runs a kernel on arrays that fit in the caches. The
// difference between runs with two values of TIMES is due to the kernel alone.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "kernels/dispatch.h"

namespace {

using namespace posenc::kernels;

constexpr int64_t kRows = 16, kDim = 256;
std::vector<int64_t> ids() {
  std::vector<int64_t> all(kRows);
  for (int64_t i = 0; i < kRows; ++i) all[i] = i * 5 % kRows;
  return all;
}
const std::vector<int64_t> kIds = ids();
// Ordinary numbers in every type: bytes 3e, 3d, 3c, 3b, so about 0.2 in float32, 1 in float16.
const std::vector<uint32_t> kNumbers(4 * kRows * kDim, 0x3e3d3c3b);
std::vector<uint32_t> out(4 * kRows * kDim + 64), scratch(1 << 18);
const std::vector<uint8_t> kBits(kRows* kDim, 0xb5);

const float* numbers() { return reinterpret_cast<const float*>(kNumbers.data()); }
float* lines(std::vector<uint32_t>& v) {  // aligned to a cache line
  return reinterpret_cast<float*>((reinterpret_cast<uintptr_t>(v.data()) + 63) / 64 * 64);
}

void gather(const InferenceKernels& use, embed::Type type) {
  embed::EmbedRequest g = {};
  g.ids = {kIds.data(), true};
  g.tokens = kRows;
  g.tables = 1;
  g.weight = g.added[0].table = numbers();
  g.weight_stride = g.dim = g.added[0].stride = kDim;
  g.scale = 16.0;
  g.added[0].count = kRows;
  g.kept = {kBits.data(), 1.25};
  g.out = lines(out);
  use.gather.gather[static_cast<int>(type)](g, 0, kRows);
}

void sum_rows(const InferenceKernels& use, embed::Type type) {
  static const std::vector<int32_t> token(kRows, 3);
  static const int32_t first[] = {0, 5, kRows};
  embed::SumRowsRequest s;
  s.grad = numbers();
  s.dim = s.out_stride = kDim;
  s.scale = 16.0;
  s.token = token.data();
  s.first = first;
  s.out = lines(out);
  use.sum_rows.sum_rows[static_cast<int>(type)](s, 0, 2);
}

void rotary_heads(const InferenceKernels& use, embed::Type type) {
  rotary::Rotation r = {};
  r.angles.cos = r.angles.sin = numbers();
  r.angles.row_stride = 32;
  r.angles.step = 1;
  r.angles.is_float = r.angles.round = true;
  r.length = kRows;
  r.pairs = 32;
  r.width = 64;
  r.count = 1;
  r.heads[0] = {numbers(), lines(out), 4, 0, 64, 4 * 64, 0, 64, 4 * 64};
  use.rotary.rotate[static_cast<int>(type)](r, 0, kRows, lines(scratch));
}

void embeddings(const InferenceKernels& use) {
  embed::EmbedRequest q;
  q.ids = {kIds.data(), true};
  q.tokens = kRows;
  q.weight = numbers();
  q.weight_stride = q.dim = kDim;
  q.tables = 1;
  q.added[0] = {numbers(), kDim, 0, {nullptr, false}, 1, kRows};
  q.norm.weight = q.norm.bias = numbers();
  q.norm.eps = 1e-5F;
  q.out = lines(out);
  use.embeddings.embeddings[static_cast<int>(embed::NormRounding::Fused)](q, 0, kRows);
}

void linear(const inference::LinearKernels& kernels, int64_t rows) {
  kernels.run({numbers(), kDim, rows, numbers(), numbers(), kDim, 32, lines(out), 32}, 0, 32,
              lines(scratch));
}

// Rows of angles, and their products: rows of a table.
void sincos_row(const InferenceKernels& use) {
  static const std::vector<double> turns(kDim, 0x1p-12);
  sincos::FrequencyView f;
  f.count = f.padded = kDim;
  for (auto& piece : f.piece) piece = turns.data();
  f.rest = turns.data();
  use.sincos.row(f, 12345.0, 0.0, reinterpret_cast<double*>(lines(out)));
}
void sincos_write(const InferenceKernels& use) {
  static const std::vector<double> bound(kDim, 0x1p-48);
  static const std::vector<double> row =
      [] {  // far from zero, and from where roundings are left open
        std::vector<double> cosines(2 * kDim, 0.61);
        std::fill(cosines.begin() + kDim, cosines.end(), 0.33);
        return cosines;
      }();
  sincos::RowLayout layout;
  layout.sin_count = layout.cos_count = kDim;
  layout.row_stride = 2 * kDim;
  sincos::RowsRequest r;
  r.first = r.second = row.data();
  r.second_stride = 0;
  r.count = kRows;
  r.sin_bound = bound.data();
  r.cos_bound = 0x1p-48;
  r.padded = kDim;
  r.layout = &layout;
  r.out = lines(out);
  r.quick = true;
  r.ziv_fallback = [](const void*, int64_t, bool, double, sincos::Format) -> double {
    std::abort();
  };
  use.sincos.write(r);
}

const std::map<std::string, std::function<void(const InferenceKernels&)>> kKernels = {
    {"gather float32", [](const InferenceKernels& use) { gather(use, embed::Type::Float32); }},
    {"gather bfloat16", [](const InferenceKernels& use) { gather(use, embed::Type::BFloat16); }},
    {"gather float16", [](const InferenceKernels& use) { gather(use, embed::Type::Float16); }},
    {"sum_rows float32", [](const InferenceKernels& use) { sum_rows(use, embed::Type::Float32); }},
    {"sum_rows bfloat16",
     [](const InferenceKernels& use) { sum_rows(use, embed::Type::BFloat16); }},
    {"rotary float32",
     [](const InferenceKernels& use) { rotary_heads(use, embed::Type::Float32); }},
    {"rotary bfloat16",
     [](const InferenceKernels& use) { rotary_heads(use, embed::Type::BFloat16); }},
    {"embeddings", embeddings},
    {"sincos_rows: a row", sincos_row},
    {"sincos_rows: entries", sincos_write},
    {"linear_few, 4 rows", [](const InferenceKernels& use) { linear(use.linear_few, 4); }},
    {"linear_many, 32 rows", [](const InferenceKernels& use) { linear(use.linear_many, 32); }},
};

}  // namespace

int main(int count, char** arguments) {
  if (count == 1) {
    for (const auto& [name, run] : kKernels) std::puts(name.c_str());
    return 0;
  }
  const InferenceKernels* const use = count == 4 ? find_inference(arguments[1]) : nullptr;
  const auto found = use != nullptr ? kKernels.find(arguments[2]) : kKernels.end();
  if (found == kKernels.end()) {
    std::fputs(
        "usage: kernel_instructions SET KERNEL TIMES; without arguments, prints the kernels\n",
        stderr);
    return 2;
  }
  for (int64_t i = std::atoll(arguments[3]); i > 0; --i) found->second(*use);
  return 0;
}
