#pragma once

// Describes what a search found.

#include "catalogue/identify/search.h"
#include "posenc/catalogue/identify.h"

namespace posenc::identification {

Identification report(const SearchResult& found);

}  // namespace posenc::identification
