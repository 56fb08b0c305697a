#pragma once

#include <cstdint>
#include <functional>

#include "kernels/inference.h"

namespace posenc::inference {

/// The number of rows in the whole call. The kernels for few and for many rows sum in different
/// orders, so the choice must not depend on how rows are split between threads.
enum class RowRegime { One, Few, Many };
constexpr int kRowRegimes = 3;
RowRegime row_regime(int64_t rows);

/// Columns [begin, end) of a product: `begin` is a multiple of kPartColumns.
struct ColumnPart {
  int64_t begin, end;
};
constexpr int64_t kPartColumns = 16;

/// Calls work(begin, end) for parts of `count` pieces; threads share them, each with at least
/// `least_work`.
void share_work(int64_t count, int64_t work_of_one, int64_t least_work,
                const std::function<void(int64_t, int64_t)>& work);

/// Runs posenc's own kernels, for a weight in float32 or bfloat16; threads share the work by
/// columns.
void run_linear(const kernels::inference::LinearRequest& request, RowRegime regime);
void run_linear(const kernels::inference::LinearRequestOf<kernels::inference::BFloat16>& request,
                RowRegime regime);

/// The same for the columns of `part` alone, by this thread, to the beginning of request.out.
void run_linear(const kernels::inference::LinearRequest& request, RowRegime regime,
                ColumnPart part);
void run_linear(const kernels::inference::LinearRequestOf<kernels::inference::BFloat16>& request,
                RowRegime regime, ColumnPart part);

}  // namespace posenc::inference
