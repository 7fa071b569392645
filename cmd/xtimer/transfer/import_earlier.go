package transfer

import (
	"crypto/sha256"

	"xtimer/engine"
	api "xtimer/httpapi/client"
)

// earlier are the timers that a dry run has found it would create. A later line
// with the name or the id of one of them would meet it, and meets it here. Of a
// definition only the sum is held: there may be millions.
type earlier struct {
	names map[[2]string]*early // by app and name
	ids   map[engine.TimerID]*early
}

type early struct {
	at, app, name string
	id            engine.TimerID // 0: it gets a new one
	sum           [sha256.Size]byte
}

func newEarlier() *earlier {
	return &earlier{map[[2]string]*early{}, map[engine.TimerID]*early{}}
}

// add says what would become of an item that meets nothing in its place: it is
// created, unless a line before it is. id is 0 where it gets a new one.
func (e *earlier) add(i *item, id engine.TimerID, d *engine.Definition) {
	now := &early{i.at, d.App, d.Name, id, sha256.Sum256(engine.AppendTimer(nil, &engine.Timer{Definition: *d}))}
	key := [2]string{d.App, d.Name}
	was, sameID := e.names[key], e.ids[id]
	switch {
	case was == nil && sameID != nil:
		i.set(resultConflict, "id %s belongs to the timer %s/%s of %s", id, sameID.app, sameID.name, sameID.at)
	case was == nil:
		i.set(api.Created, "")
		e.names[key] = now
		if id != 0 {
			e.ids[id] = now
		}
	case id != 0 && was.id != id:
		i.set(resultConflict, "the timer of that name of %s has another id", was.at)
	case was.sum != now.sum:
		i.set(resultConflict, "the timer of that name of %s has another definition", was.at)
	default:
		i.set(api.Unchanged, "")
	}
}
