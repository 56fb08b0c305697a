#include "core/named.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/compare.h"

namespace posenc {
namespace {

struct Named {
  std::string name, former_name;
};
struct Model {
  const char* model_type;
};

const std::vector<Named> kNamed = {{"new", "old"}, {"bert", ""}};
constexpr Model kModels[] = {{"bert"}, {"bart"}};

TEST(Named, FindsRowsByNameFormerNameOrModelType) {
  EXPECT_EQ(detail::find_named(kNamed, "bert"), &kNamed[1]);
  EXPECT_EQ(detail::find_named(kNamed, "old"), &kNamed[0]);
  EXPECT_EQ(detail::find_named(kNamed, "ol"), nullptr);
  EXPECT_EQ(detail::find_named(kNamed, ""), nullptr);  // no former name is no name
  EXPECT_EQ(detail::find_named(kModels, "bart"), &kModels[1]);
  const std::vector<std::string> texts = {"a", "b"};
  EXPECT_EQ(detail::find_named(texts, "b"), &texts[1]);
}

TEST(Named, RefusesWithTheNearestNames) {
  EXPECT_EQ(&detail::find_named(kNamed, "old", "[x] ", "no `{}`; the nearest are {}"), &kNamed[0]);
  EXPECT_ERROR(detail::find_named(kNamed, "bernt", "[{}] ", "no `{}`; the nearest are {}"),
               c10::ValueError, "[{}] no `bernt`; the nearest are bert, new");
  EXPECT_ERROR(detail::refuse_name(kModels, "brt", "[x] ", "nearest {1}. Got {0}"), c10::ValueError,
               "[x] nearest bert, bart. Got brt");
}

}  // namespace
}  // namespace posenc
