#include "kernels/inference/kernels.h"
#include "kernels/isa.h"

namespace posenc::kernels::inference {
namespace {

constexpr Kernels kInferenceSse2 = {sse2::few_kernels, sse2::many_kernels, sse2::attention_kernels,
                                    sse2::sequence_kernels, sse2::row_kernels};
constexpr Kernels kInferenceAvx2 = {avx2::few_kernels, avx2::many_kernels, avx2::attention_kernels,
                                    avx2::sequence_kernels, avx2::row_kernels};
constexpr Kernels kInferenceAvx512 = {avx512::few_kernels, avx512::many_kernels,
                                      avx512::attention_kernels, avx512::sequence_kernels,
                                      avx512::row_kernels};
constexpr KernelTable<Kernels> kInferenceTable = {
    {&kInferenceSse2, &kInferenceAvx2, &kInferenceAvx512}};

}  // namespace

const Kernels& kernels() { return kInferenceTable.chosen(); }
const Kernels* find_kernels(const char* name) { return kInferenceTable.find(name); }

}  // namespace posenc::kernels::inference
