#include "differential/drawn.h"

#include <iostream>
#include <sstream>

namespace posenc::differential {

Drawn::Drawn(const Json& options) : random_(options.at("seed").get<uint64_t>()) {
  torch::manual_seed(random_());
}

int64_t Drawn::near(int64_t n) {
  if (coin(0.7)) return n;
  return std::max<int64_t>(1, any<int64_t>({n / 2, n + 1, 2 * n, 3 * n, 1, 100 * n}));
}

void Drawn::did(const std::string& what) {
  report_ += (report_.empty() ? "" : "; ") + what;
  std::cerr << what << "\n";
}

void Drawn::fail(const std::string& why) const {
  throw std::runtime_error(why + " [" + report_ + "]");
}

Outcome outcome_of(const std::function<std::vector<at::Tensor>()>& compute) {
  try {
    return {compute(), ""};
  } catch (const c10::Error& error) {
    return {{}, std::string("error: ") + error.what_without_backtrace()};
  } catch (const std::exception& error) {
    return {{}, std::string("error: ") + error.what()};
  }
}

std::string difference(const at::Tensor& got, const at::Tensor& expected, double tolerance) {
  std::ostringstream why;
  if (!got.defined() || !expected.defined()) {
    return got.defined() == expected.defined() ? "" : got.defined() ? "is defined" : "is undefined";
  }
  if (got.sizes() != expected.sizes() || got.scalar_type() != expected.scalar_type()) {
    why << got.scalar_type() << " " << got.sizes() << " for " << expected.scalar_type() << " "
        << expected.sizes();
    return why.str();
  }
  if (got.numel() == 0) return "";
  const torch::NoGradGuard no_grad;
  const auto dense = [](const at::Tensor& x) {
    return (x.is_sparse() ? x.to_dense() : x).to(at::kDouble);
  };
  const at::Tensor a = dense(got), b = dense(expected), finite = at::isfinite(b);
  if (!at::equal(at::isfinite(a), finite)) return "other elements are finite";
  const auto none = at::zeros_like(a);
  const double off =
      (at::where(finite, a, none) - at::where(finite, b, none)).abs().max().item<double>();
  const double largest = at::where(finite, b, none).abs().max().item<double>();
  if (off <= tolerance * largest) return "";
  why << "off by " << off << " of " << largest;
  return why.str();
}

std::string difference(const std::vector<at::Tensor>& got, const std::vector<at::Tensor>& expected,
                       double tolerance) {
  if (got.size() != expected.size()) return "another number of results";
  for (size_t i = 0; i < got.size(); ++i) {
    const std::string why = difference(got[i], expected[i], tolerance);
    if (!why.empty()) return "result " + std::to_string(i) + " " + why;
  }
  return "";
}

}  // namespace posenc::differential
