// The layer over the JSON library: its trees equal the library's own, and invalid texts are
// rejected.
#include "weights/common/json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <string>

#include "support/seed.h"
#include "weights/files.h"

namespace posenc::testing {
namespace {

using Json = nlohmann::ordered_json;

Json tree(const std::string& text) { return io::json_tree<Json>(text, "its settings"); }

class RandomJson {
 public:
  explicit RandomJson(uint32_t seed) : random_(seed) {}

  Json value(int depth) {
    switch (random_() % (depth > 0 ? 9 : 7)) {
      case 0: return nullptr;
      case 1: return random_() % 2 == 0;
      case 2: return random_();
      case 3: return -static_cast<int64_t>(random_());
      case 4: return static_cast<double>(random_()) / 7;
      case 5: return uint64_t{18446744073709551615U} - random_() % 3;
      case 6: return text();
      case 7: {
        Json list = Json::array();
        for (auto i = random_() % 5; i > 0; --i) list.push_back(value(depth - 1));
        return list;
      }
      default: {
        Json object = Json::object();
        for (auto i = random_() % 5; i > 0; --i) object[text()] = value(depth - 1);
        return object;
      }
    }
  }

 private:
  std::string text() {
    const char* const some[] = {"a", "b", "", "\"", "\\", "\xc3\xa4", "\n", "\xf0\x9f\x98\x80"};
    std::string result;
    for (auto i = random_() % 4; i > 0; --i) result += some[random_() % std::size(some)];
    return result;
  }

  std::mt19937 random_;
};

// As json.dump() writes them; a text that has their names in a string keeps it.
TEST(JsonTree, HasTheNumbersOfPython) {
  const Json value = tree(R"({"a": Infinity, "b": [-Infinity, NaN, 2.5], "NaN": "\"Infinity\\"})");
  EXPECT_EQ(value["a"].get<double>(), std::numeric_limits<double>::infinity());
  EXPECT_EQ(value["b"][0].get<double>(), -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(value["b"][1].get<double>()));
  EXPECT_EQ(value["b"][2].get<double>(), 2.5);
  EXPECT_EQ(value["NaN"].get<std::string>(), "\"Infinity\\");
  EXPECT_EQ(io::shown(value["a"]), "Infinity");
  EXPECT_EQ(io::shown(value["b"][1]), "NaN");
  for (const char* text : {"[Infinit]", "[+Infinity]", "[nan]", "[- Infinity]", "[NaNs]"}) {
    SCOPED_TRACE(text);
    EXPECT_CONTAINS(refusal([&] { tree(text); }), "must have JSON in UTF-8");
  }
  io::JsonTree<Json> strict("its header");
  EXPECT_CONTAINS(refusal([&] { io::parse_json("[NaN]", "its header", strict); }),
                  "must have JSON in UTF-8 as its header");
}

TEST(JsonTree, IsTheLibrarysOwn) {
  RandomJson random(seed(3));
  for (int round = 0; round < 500; ++round) {
    const std::string text = random.value(5).dump(static_cast<int>(round % 3) - 1);
    EXPECT_EQ(tree(text).dump(), Json::parse(text).dump()) << text;
  }
}

TEST(JsonTree, KeepsTheOrder) {
  EXPECT_EQ(tree(R"({"b": [2, {}], "a": {"x": [1]}})").dump(), R"({"b":[2,{}],"a":{"x":[1]}})");
  EXPECT_EQ(tree("123456789012345678901234567890").dump(), "1.2345678901234568e+29");
}

TEST(JsonTree, HasEachKeyOnce) {
  EXPECT_EQ(tree(R"([{"a":1,"b":{"a":2}},{"a":3}])").dump(), R"([{"a":1,"b":{"a":2}},{"a":3}])");
  EXPECT_CONTAINS(refusal([] { tree(R"({"b": {"a": 1, "c": [], "a": 1}})"); }),
                  "must have each name once in its settings. Got 'a' twice");
}

TEST(Json, MayBeNestedTo64) {
  const auto nested = [](std::size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_EQ(tree(nested(64)).dump(), nested(64));
  EXPECT_CONTAINS(refusal([&] { tree(nested(65)); }),
                  "LimitExceeded: must nest its settings no deeper than 64");
}

TEST(Json, IsOneValueInUtf8) {
  const std::string rule =
      "Corrupt: must have JSON in UTF-8 as its settings. Got an error at byte ";
  const std::pair<std::string, const char*> cases[] = {{"", "1"},
                                                       {"{", "2"},
                                                       {"{} x", "4"},
                                                       {"\xef\xbb\xbf{}", "1"},
                                                       {std::string("{}\0", 3), "3"},
                                                       {"\"\xff\"", "2"}};
  for (const auto& [text, byte] : cases) {
    EXPECT_CONTAINS(refusal([&, &text = text] { tree(text); }), rule + byte + " of it");
  }
}

TEST(Json, WritesStrings) {
  EXPECT_EQ(io::json_string("a\"\\\n\xc3\xa4"), "\"a\\\"\\\\\\n\xc3\xa4\"");
  EXPECT_CONTAINS(refusal([] { io::json_string("\xff"); }),
                  "Unsupported: must have names and metadata in UTF-8");
}

}  // namespace
}  // namespace posenc::testing
