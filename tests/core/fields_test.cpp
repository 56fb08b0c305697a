// The fields of options: what differs, and how they are printed.

#include "posenc/core/fields.h"

#include <gtest/gtest.h>

#include <limits>
#include <sstream>

#include "core/print_fields.h"
#include "posenc/transformer/layers/transformer_encoder.h"

namespace posenc::fields_test {
namespace {

enum class Kind { First, Second };

struct Inner {
  double eps = 1e-5;
  bool is_exact = false;

  POSENC_FIELDS(Inner, eps, is_exact);
};
struct Empty {};

struct Outer {
  explicit Outer(int64_t width) : width_(width) {}

  int64_t width_;
  Kind kind_ = Kind::First;
  std::optional<Inner> inner_;
  std::vector<Inner> list_;
  std::variant<Empty, Inner> choice_;
  double dropout_ = 0.0;

  POSENC_FIELDS(Outer, width_, kind_, inner_, list_, choice_);
  POSENC_TRAINING_FIELDS(dropout_);
};

std::string where(const Outer& a, const Outer& b) {
  std::string found;
  const bool differs = fields::differ(a, b, fields::Which::EvalMode, &found);
  EXPECT_EQ(differs, !found.empty());
  return found;
}

template <typename Options>
std::string printed(const Options& options, const Options& defaults) {
  std::ostringstream text;
  fields::print_module(text, "Outer", options, defaults);
  return text.str();
}

TEST(Fields, TheFirstThatDiffersIsNamed) {
  const Outer same(8);
  const auto changed = [&](const auto& change) {
    Outer other = same;
    change(other);
    EXPECT_FALSE(other == same);
    return where(same, other);
  };
  EXPECT_TRUE(same == Outer(8));
  EXPECT_EQ(where(same, Outer(8)), "");
  EXPECT_EQ(changed([](Outer& o) { o.width_ = 9; }), ".width");
  EXPECT_EQ(changed([](Outer& o) { o.inner_.emplace(); }), ".inner");
  EXPECT_EQ(changed([](Outer& o) { o.list_.resize(1); }), ".list");
  EXPECT_EQ(changed([](Outer& o) { o.choice_ = Inner(); }), ".choice");
  EXPECT_EQ(changed([](Outer& o) { o.dropout_ = 0.5; }), "");  // which only training reads
}

TEST(Fields, StructsInAFieldAreCompared) {
  Outer a(8), b(8);
  for (Outer* one : {&a, &b}) {
    one->inner_.emplace();
    one->list_.resize(2);
    one->choice_ = Inner();
  }
  EXPECT_TRUE(a == b);
  b.inner_->is_exact = true;
  EXPECT_EQ(where(a, b), ".inner.is_exact");
  b.inner_ = a.inner_;
  b.list_[1].eps = 1.0;
  EXPECT_EQ(where(a, b), ".list[1].eps");
  b.list_ = a.list_;
  std::get<Inner>(b.choice_).eps = 1.0;
  EXPECT_EQ(where(a, b), ".choice.eps");
}

TEST(Fields, NaNEqualsNaN) {
  Inner a, b;
  a.eps = b.eps = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(a == b);
  b.eps = 1.0;
  EXPECT_FALSE(a == b);
}

TEST(Fields, PrintsWhatIsNotItsDefault) {
  Outer options(8);
  EXPECT_EQ(printed(options, Outer(-1)), "posenc::Outer(width=8)");
  options.kind_ = Kind::Second;
  options.inner_ = Inner{1.0, false};
  options.list_ = {Inner(), Inner{1e-5, true}};
  options.choice_ = Inner{0.5, true};
  options.dropout_ = 0.25;
  EXPECT_EQ(printed(options, Outer(-1)),
            "posenc::Outer(width=8, kind=Second, inner=(eps=1), list=[(), (is_exact=true)], "
            "choice=Inner(eps=0.5, is_exact=true), dropout=0.25)");
  EXPECT_EQ(printed(Outer(8), options),
            "posenc::Outer(kind=First, inner=none, list=[], choice=Empty, dropout=0)");
}

TEST(Fields, OptionsOfModulesAreEqualInAllFields) {
  const TransformerEncoderOptions one(TransformerLayerOptions(8, 2), 3);
  EXPECT_TRUE(one == TransformerEncoderOptions(TransformerLayerOptions(8, 2), 3));
  EXPECT_FALSE(one == TransformerEncoderOptions(TransformerLayerOptions(8, 2), 4));
  EXPECT_FALSE(one == TransformerEncoderOptions(TransformerLayerOptions(8, 2).dropout(0.0), 3));
}

}  // namespace
}  // namespace posenc::fields_test
